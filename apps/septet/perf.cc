// septet perf: the load generator with perf_analyzer's flags, console lines and CSV.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>

#include "measure/edge/load_generator.h"
#include "measure/load_schedule.h"
#include "measure/perf_console.h"
#include "measure/perf_csv.h"
#include "measure/perf_options.h"
#include "os/durable_file.h"
#include "output.h"
#include "verb.h"

namespace septet::app {
namespace {

constexpr std::uint16_t kHttpPort = 8000;

// What is about the output and not about the measurement.
struct PerfOutput {
  std::string csv_file;
  bool verbose_csv = false;
  int verbose = 0;
};

struct PerfWords {
  measure::PerfArguments arguments;
  PerfOutput output;
  std::uint64_t seed = 1;
};

std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void add_load_options(CLI::App& verb, measure::PerfArguments& words) {
  verb.add_option("-m,--model-name", words.model, "Model to measure")->required();
  verb.add_option("-x,--model-version", words.version, "Version of the model");
  verb.add_option("-u,--url", words.urls, "Server: HOST:PORT or unix:/path; may be repeated")
      ->allow_extra_args(false)
      ->type_name("URL");
  verb.add_option("-i,--protocol", words.protocol, "http")->capture_default_str();
  verb.add_option("-H", words.headers, "NAME:VALUE, a header for every request; may be repeated")
      ->allow_extra_args(false);
  verb.add_option("--concurrency-range", words.concurrency_range,
                  "START[:END[:STEP]] requests in flight; END 0 grows until -l is exceeded");
  verb.add_option("--request-rate-range", words.request_rate_range,
                  "START[:END[:STEP]] requests per second, whatever the server does");
  verb.add_option("--request-distribution", words.request_distribution, "constant or poisson")
      ->capture_default_str();
  verb.add_option("--request-intervals", words.request_intervals,
                  "File of gaps between requests in microseconds, one a line");
  verb.add_flag("--binary-search", words.binary_search,
                "Search the range for the highest level within -l");
  verb.add_option("-l,--latency-threshold", words.latency_threshold_ms, "Milliseconds; 0 = none");
  verb.add_flag("-a,--async", words.async, "As perf_analyzer's; the load is the same here");
  verb.add_flag("--sync", words.sync, "As perf_analyzer's; the load is the same here");
  verb.add_flag("--streaming", words.streaming, "gRPC streams");
}

void add_measuring_options(CLI::App& verb, PerfWords& words) {
  measure::PerfArguments& arguments = words.arguments;
  verb.add_option("-p,--measurement-interval", arguments.measurement_interval_ms,
                  "Length of a window in milliseconds (5000)");
  verb.add_option("--measurement-mode", arguments.measurement_mode, "time_windows or count_windows")
      ->capture_default_str();
  verb.add_option("--measurement-request-count", arguments.measurement_request_count,
                  "Requests in a count window (50)");
  verb.add_option("-s,--stability-percentage", arguments.stability_percentage,
                  "How much three windows may differ (10)");
  verb.add_option("-r,--max-trials", arguments.max_trials, "Windows at most for a level (10)");
  verb.add_option("--percentile", arguments.percentile,
                  "Judge by this latency percentile; -1 = by the average")
      ->capture_default_str();
  verb.add_option("-b,--batch-size", arguments.batch_size, "Batch size")->capture_default_str();
  verb.add_option("--input-data", arguments.input_data, "random or zero")->allow_extra_args(false);
  verb.add_option("--shape", arguments.shapes, "NAME:1,2,3 for an input with variable dimensions")
      ->allow_extra_args(false);
  verb.add_option("--string-length", arguments.string_length, "Length of made-up strings")
      ->capture_default_str();
  verb.add_option("--string-data", arguments.string_data, "Content of every string");
  verb.add_option("--seed", words.seed, "Seed of random data and Poisson schedules")
      ->capture_default_str();
  verb.add_option("-f", words.output.csv_file, "CSV file")->type_name("FILE");
  verb.add_flag("--verbose-csv", words.output.verbose_csv, "More columns in the CSV file");
  verb.add_flag("-v,--verbose", words.output.verbose, "Show every window");
}

Result<measure::Target> target_of(const measure::PerfArguments& arguments,
                                  const measure::PerfPlan& plan) {
  measure::Target target;
  target.model = arguments.model;
  target.version = arguments.version;
  target.headers = plan.headers;
  std::vector<std::string> urls = arguments.urls;
  if (urls.empty()) {
    urls = {"localhost"};
  }
  for (const std::string& url : urls) {
    Result<os::Endpoint> endpoint = os::parse_endpoint(url, kHttpPort);
    if (!endpoint.ok()) {
      return endpoint.error();
    }
    target.endpoints.push_back(*std::move(endpoint));
  }
  return target;
}

Result<std::vector<Duration>> read_intervals(const std::string& path) {
  const Result<std::string> text = os::read_whole_file(path);
  return text.ok() ? measure::parse_intervals(*text) : text.error();
}

Result<measure::GeneratorOptions> generator_options(const measure::PerfPlan& plan,
                                                    std::uint64_t seed) {
  measure::GeneratorOptions options;
  options.distribution = plan.distribution;
  options.seed = seed;
  if (plan.intervals_file) {
    Result<std::vector<Duration>> intervals = read_intervals(*plan.intervals_file);
    if (!intervals.ok()) {
      return intervals.error();
    }
    options.intervals = *std::move(intervals);
  }
  return options;
}

// The rows go to console and file as they come.
class PerfRun {
 public:
  PerfRun(const measure::PerfPlan& plan, const PerfOutput& output,
          measure::LoadGenerator& generator)
      : plan_(plan), generator_(generator) {
    format_.mode = plan.mode;
    format_.percentile = plan.rules.percentile;
    format_.server_columns = generator.description().has_statistics();
    format_.cache_columns = generator.description().model.has_response_cache;
    format_.verbose = output.verbose_csv;
    if (output.verbose > 0) {
      generator.on_window([this](const auto& /*level*/, const auto& windows) {
        fmt::print("{}", measure::perf_window_text(plan_, windows.size(), windows.back()));
        std::fflush(stdout);
      });
    }
  }

  Result<Ok> run(const std::string& csv_file) {
    if (!csv_file.empty()) {
      Result<os::AppendFile> file = os::AppendFile::create(csv_file);
      if (!file.ok()) {
        return file.error();
      }
      csv_.emplace(*std::move(file));
      SEPTET_TRY(csv_->append(measure::perf_csv_header(format_)));
    }
    fmt::print("{}", measure::perf_settings_text(plan_));
    measure::run_sweep(generator_, plan_.sweep(), stop_requested,
                       [this](const measure::LevelResult& result) { add(result); });
    fmt::print("{}", measure::perf_summary_text(plan_, results_));
    return write_result_;
  }

  bool measured_anything() const {
    return std::any_of(results_.begin(), results_.end(),
                       [](const measure::LevelResult& row) { return row.completed > 0; });
  }
  const std::vector<measure::LevelResult>& results() const { return results_; }

 private:
  void add(const measure::LevelResult& result) {
    fmt::print("{}", measure::perf_level_text(plan_, result));
    std::fflush(stdout);
    if (csv_ && write_result_.ok()) {
      write_result_ = csv_->append(measure::perf_csv_row(format_, result));
    }
    results_.push_back(result);
  }

  const measure::PerfPlan& plan_;
  measure::LoadGenerator& generator_;
  measure::PerfCsvFormat format_;
  std::optional<os::AppendFile> csv_;
  Result<Ok> write_result_ = Ok{};
  std::vector<measure::LevelResult> results_;
};

Error nothing_measured(const std::vector<measure::LevelResult>& results) {
  const bool failed = !results.empty() && !results.back().last_failure.empty();
  return failed ? make_error(ErrorKind::kFailed,
                             "no request was answered: " + results.back().last_failure)
                : make_error(ErrorKind::kFailed,
                             "no request was answered within the measurement windows",
                             "give them more time with --measurement-interval");
}

int run_perf(const PerfWords& words, OutputFormat format) {
  Result<measure::PerfPlan> plan = measure::plan_of(words.arguments);
  if (!plan.ok()) {
    return fail(plan.error(), format);
  }
  plan->input.seed = words.seed;
  const Result<measure::Target> target = target_of(words.arguments, *plan);
  if (!target.ok()) {
    return fail(target.error(), format);
  }
  const Result<measure::GeneratorOptions> options = generator_options(*plan, words.seed);
  if (!options.ok()) {
    return fail(options.error(), format);
  }
  if (!options->intervals.empty()) {
    plan->begin = measure::shown_rate(options->intervals);
    plan->end = plan->begin;
  }
  const Result<std::unique_ptr<measure::LoadGenerator>> generator =
      measure::LoadGenerator::open(*target, plan->input, plan->rules, *options);
  if (!generator.ok()) {
    return fail(generator.error(), format);
  }
  std::signal(SIGINT, [](int /*signal*/) { stop_requested.store(true); });
  std::signal(SIGTERM, [](int /*signal*/) { stop_requested.store(true); });
  PerfRun run(*plan, words.output, **generator);
  if (const Result<Ok> done = run.run(words.output.csv_file); !done.ok()) {
    return fail(done.error(), format);
  }
  if (!run.measured_anything()) {
    return fail(nothing_measured(run.results()), format);
  }
  return 0;
}

}  // namespace

void add_perf(CLI::App& app, const Globals& globals, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "perf", "Measure throughput and latency of a model, as perf_analyzer does");
  auto words = std::make_shared<PerfWords>();
  add_load_options(*verb, words->arguments);
  add_measuring_options(*verb, *words);
  verb->callback([words, &globals, &action] {
    action = [words, &globals] { return run_perf(*words, globals.output); };
  });
}

}  // namespace septet::app
