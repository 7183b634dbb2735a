// septet perf: the load generator with perf_analyzer's flags, console lines and CSV.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>

#include "measure/arrival_trace.h"
#include "measure/edge/compressed_file.h"
#include "measure/edge/load_generator.h"
#include "measure/level_json.h"
#include "measure/perf_console.h"
#include "measure/perf_csv.h"
#include "measure/perf_options.h"
#include "os/clock.h"
#include "os/durable_file.h"
#include "os/interrupt.h"
#include "output.h"
#include "verb.h"

namespace septet::app {
namespace {

constexpr std::uint16_t kHttpPort = 8000;
constexpr std::uint16_t kGrpcPort = 8001;

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
  std::uint64_t output_shared_memory_bytes = 102'400;
  unsigned max_threads = 0;
};

void add_load_options(CLI::App& verb, measure::PerfArguments& words) {
  verb.add_option("-m,--model-name", words.model, "Model to measure")->required();
  verb.add_option("-x,--model-version", words.version, "Version of the model");
  verb.add_option("-u,--url", words.urls, "Server: HOST:PORT or unix:/path; may be repeated")
      ->allow_extra_args(false)
      ->type_name("URL");
  verb.add_option("-i,--protocol", words.protocol, "http or grpc")->capture_default_str();
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
  verb.add_option("--request-trace", words.request_trace,
                  "File of arrival times (Azure's LLM traces, .gz too), replayed once");
  verb.add_option("--trace-speed", words.trace_speed, "Replay so many times faster")
      ->capture_default_str();
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
  verb.add_flag("--adaptive", arguments.adaptive,
                "Short windows until 95% confidence within -s percent (5); the default unless an "
                "option about windows is given");
  verb.add_flag("--no-adaptive", arguments.no_adaptive, "perf_analyzer's three windows");
  verb.add_option("--percentile", arguments.percentile,
                  "Judge by this latency percentile; -1 = by the average")
      ->capture_default_str();
  verb.add_option("-b,--batch-size", arguments.batch_size, "Batch size")->capture_default_str();
  verb.add_option("--input-data", arguments.input_data,
                  "random, zero, a directory, or JSON files (repeated)")
      ->allow_extra_args(false);
  verb.add_option("--shape", arguments.shapes, "NAME:1,2,3 for an input with variable dimensions")
      ->allow_extra_args(false);
  verb.add_option("--string-length", arguments.string_length, "Length of made-up strings")
      ->capture_default_str();
  verb.add_option("--string-data", arguments.string_data, "Content of every string");
  verb.add_option("--seed", words.seed, "Seed of random data and Poisson schedules")
      ->capture_default_str();
}

void add_sequence_options(CLI::App& verb, PerfWords& words) {
  measure::PerfArguments& arguments = words.arguments;
  verb.add_option("--shared-memory", arguments.shared_memory, "none or system")
      ->capture_default_str();
  verb.add_option("--output-shared-memory-size", words.output_shared_memory_bytes,
                  "Bytes for an output without a fixed size")
      ->capture_default_str();
  verb.add_option("--num-of-sequences", arguments.live_sequences,
                  "Sequences alive at a request rate")
      ->capture_default_str();
  verb.add_option("--sequence-length", arguments.sequence_length, "Requests of a sequence")
      ->capture_default_str();
  verb.add_option("--sequence-length-variation", arguments.sequence_length_variation, "Percent")
      ->capture_default_str();
  verb.add_option("--sequence-id-range", arguments.sequence_id_range, "START[:END]");
  verb.add_option("--max-threads", words.max_threads,
                  "As perf_analyzer's; one thread carries the load here");
}

void add_output_options(CLI::App& verb, PerfOutput& output) {
  verb.add_option("-f", output.csv_file,
                  "CSV file; everything that was measured goes to FILE.jsonl beside it")
      ->type_name("FILE");
  verb.add_flag("--verbose-csv", output.verbose_csv, "More columns in the CSV file");
  verb.add_flag("-v,--verbose", output.verbose, "Show every window");
}

Result<measure::Target> target_of(const measure::PerfArguments& arguments,
                                  const measure::PerfPlan& plan) {
  measure::Target target;
  if (plan.grpc) {
    target.protocol = plan.call_mode == measure::CallMode::kStreaming
                          ? measure::Protocol::kGrpcStream
                          : measure::Protocol::kGrpc;
  }
  target.model = arguments.model;
  target.version = arguments.version;
  target.headers = plan.headers;
  std::vector<std::string> urls = arguments.urls;
  if (urls.empty()) {
    urls = {"localhost"};
  }
  for (const std::string& url : urls) {
    Result<os::Endpoint> endpoint = os::parse_endpoint(url, plan.grpc ? kGrpcPort : kHttpPort);
    if (!endpoint.ok()) {
      return endpoint.error();
    }
    target.endpoints.push_back(*std::move(endpoint));
  }
  return target;
}

// The gaps of an intervals file or of a trace; none without either.
Result<std::vector<Duration>> read_gaps(const measure::PerfPlan& plan) {
  if (plan.trace_file) {
    const Result<std::string> text = measure::read_compressed_file(*plan.trace_file);
    return text.ok() ? measure::parse_arrival_trace(*text, plan.trace_speed) : text.error();
  }
  if (plan.intervals_file) {
    const Result<std::string> text = os::read_whole_file(*plan.intervals_file);
    return text.ok() ? measure::parse_intervals(*text) : text.error();
  }
  return std::vector<Duration>{};
}

measure::GeneratorOptions generator_options(const measure::PerfPlan& plan, const PerfWords& words,
                                            std::vector<Duration> gaps) {
  measure::GeneratorOptions options;
  options.distribution = plan.distribution;
  options.seed = words.seed;
  options.intervals = std::move(gaps);
  options.input_files = plan.input_files;
  options.shared_memory = plan.shared_memory;
  options.output_shared_memory_bytes = words.output_shared_memory_bytes;
  options.live_sequences = words.arguments.live_sequences;
  options.sequence.length = words.arguments.sequence_length;
  options.sequence.length_variation_percent = words.arguments.sequence_length_variation;
  options.sequence.first_id = plan.first_sequence_id;
  options.sequence.last_id = plan.last_sequence_id;
  return options;
}

// The rows go to console and file as they come.
class PerfRun {
 public:
  PerfRun(const measure::PerfPlan& plan, const PerfWords& words, measure::LoadGenerator& generator)
      : plan_(plan), generator_(generator) {
    format_.mode = plan.mode;
    format_.percentile = plan.rules.percentile;
    format_.server_columns = generator.description().has_statistics();
    format_.cache_columns = generator.description().model.has_response_cache;
    format_.verbose = words.output.verbose_csv;
    context_.model = words.arguments.model;
    context_.url = words.arguments.urls.empty() ? "localhost" : words.arguments.urls.front();
    context_.protocol = plan.grpc ? "grpc" : "http";
    context_.version = fmt::format("{} {}", SEPTET_VERSION, commit());
    context_.seed = words.seed;
    if (words.output.verbose > 0) {
      generator.on_window([this](const auto& /*level*/, const auto& windows) {
        fmt::print("{}", measure::perf_window_text(plan_, windows.size(), windows.back()));
        std::fflush(stdout);
      });
    }
  }

  Result<Ok> run(const std::string& csv_file, const std::atomic<bool>& stop) {
    if (!csv_file.empty()) {
      SEPTET_TRY(open_files(csv_file));
    }
    fmt::print("{}", measure::perf_settings_text(plan_));
    measure::run_sweep(generator_, plan_.sweep(), stop,
                       [this](const measure::LevelResult& result) { add(result); });
    fmt::print("{}", measure::perf_summary_text(plan_, results_));
    return written_;
  }

  bool measured_anything() const {
    return std::any_of(results_.begin(), results_.end(),
                       [](const measure::LevelResult& row) { return row.completed > 0; });
  }
  const std::vector<measure::LevelResult>& results() const { return results_; }

 private:
  Result<Ok> open_files(const std::string& csv_file) {
    Result<os::AppendFile> csv = os::AppendFile::create(csv_file);
    if (!csv.ok()) {
      return csv.error();
    }
    csv_.emplace(*std::move(csv));
    SEPTET_TRY(csv_->append(measure::perf_csv_header(format_)));
    if (csv_file.starts_with("/dev/")) {
      return Ok{};  // nothing can lie beside it
    }
    Result<os::AppendFile> open_form = os::AppendFile::create(csv_file + ".jsonl");
    if (!open_form.ok()) {
      return open_form.error();
    }
    open_form_.emplace(*std::move(open_form));
    return Ok{};
  }

  // A file that can no longer be written must not end the measurement: the console still has it.
  void add(const measure::LevelResult& result) {
    fmt::print("{}", measure::perf_level_text(plan_, result));
    std::fflush(stdout);
    if (csv_ && written_.ok()) {
      written_ = csv_->append(measure::perf_csv_row(format_, result));
    }
    if (open_form_ && written_.ok()) {
      context_.unix_time_ns = os::unix_time_ns();
      written_ = open_form_->append(measure::level_json(result, context_));
    }
    results_.push_back(result);
  }

  const measure::PerfPlan& plan_;
  measure::LoadGenerator& generator_;
  measure::PerfCsvFormat format_;
  measure::MeasurementContext context_;
  std::optional<os::AppendFile> csv_;
  std::optional<os::AppendFile> open_form_;
  Result<Ok> written_ = Ok{};
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
  const Result<std::unique_ptr<os::Interrupt>> interrupt = os::Interrupt::start();
  if (!interrupt.ok()) {
    return fail(interrupt.error(), format);
  }
  Result<measure::PerfPlan> plan = measure::plan_of(words.arguments);
  if (!plan.ok()) {
    return fail(plan.error(), format);
  }
  plan->input.seed = words.seed;
  const Result<measure::Target> target = target_of(words.arguments, *plan);
  if (!target.ok()) {
    return fail(target.error(), format);
  }
  const Result<std::vector<Duration>> gaps = read_gaps(*plan);
  if (!gaps.ok()) {
    return fail(gaps.error(), format);
  }
  if (!gaps->empty()) {
    plan->use_intervals(*gaps);
  }
  const Result<std::unique_ptr<measure::LoadGenerator>> generator = measure::LoadGenerator::open(
      *target, plan->input, plan->rules, generator_options(*plan, words, *gaps));
  if (!generator.ok()) {
    return fail(generator.error(), format);
  }
  PerfRun run(*plan, words, **generator);
  if (const Result<Ok> done = run.run(words.output.csv_file, (*interrupt)->requested());
      !done.ok()) {
    return fail(done.error(), format);
  }
  return run.measured_anything() ? 0 : fail(nothing_measured(run.results()), format);
}

}  // namespace

void add_perf(CLI::App& app, const Globals& globals, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "perf", "Measure throughput and latency of a model, as perf_analyzer does");
  auto words = std::make_shared<PerfWords>();
  add_load_options(*verb, words->arguments);
  add_measuring_options(*verb, *words);
  add_sequence_options(*verb, *words);
  add_output_options(*verb, words->output);
  verb->callback([words, &globals, &action] {
    action = [words, &globals] { return run_perf(*words, globals.output); };
  });
}

}  // namespace septet::app
