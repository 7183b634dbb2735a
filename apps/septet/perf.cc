// septet perf: the load generator with perf_analyzer's flags, console lines and CSV.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "measure/arrival_trace.h"
#include "measure/edge/client_transport.h"
#include "measure/edge/compressed_file.h"
#include "measure/edge/load_generator.h"
#include "measure/level_json.h"
#include "measure/perf_console.h"
#include "measure/perf_csv.h"
#include "measure/perf_old_options.h"
#include "measure/perf_options.h"
#include "os/clock.h"
#include "os/durable_file.h"
#include "os/interrupt.h"
#include "output.h"
#include "perf_words.h"
#include "verb.h"

namespace septet::app {
namespace {

constexpr std::uint16_t kHttpPort = 8000;
constexpr std::uint16_t kHttpsPort = 443;
constexpr std::uint16_t kGrpcPort = 8001;
constexpr std::uint16_t kMetricsPort = 8002;
constexpr int kConnectTimeoutMs = 5000;

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
  if (plan.tls) {
    Result<std::shared_ptr<const measure::TlsContext>> tls =
        measure::TlsContext::create(*plan.tls, plan.grpc ? measure::TlsContext::Protocol::kHttp2
                                                         : measure::TlsContext::Protocol::kHttp1);
    if (!tls.ok()) {
      return tls.error();
    }
    target.tls = *std::move(tls);
  }
  const std::uint16_t port = plan.grpc ? kGrpcPort : plan.tls ? kHttpsPort : kHttpPort;
  for (const std::string& url : urls) {
    Result<os::Endpoint> endpoint = os::parse_endpoint(measure::without_https(url), port);
    if (!endpoint.ok()) {
      return endpoint.error();
    }
    target.endpoints.push_back(*std::move(endpoint));
  }
  return target;
}

// HOST[:PORT][/PATH], with http:// or https:// in front or not.
Result<std::optional<measure::MetricsSource>> metrics_source(const measure::PerfPlan& plan) {
  if (!plan.metrics) {
    return std::optional<measure::MetricsSource>();
  }
  const std::string& url = plan.metrics->url;
  measure::MetricsSource source;
  source.interval = plan.metrics->interval;
  std::string address = measure::without_https(url);
  address = address.starts_with("http://") ? address.substr(7) : address;
  if (const std::size_t slash = address.find('/'); slash != std::string::npos) {
    source.path = slash + 1 == address.size() ? source.path : address.substr(slash);
    address.resize(slash);
  }
  const Result<os::Endpoint> endpoint =
      os::parse_endpoint(address, measure::is_https(url) ? kHttpsPort : kMetricsPort);
  if (!endpoint.ok()) {
    return endpoint.error();
  }
  source.server.endpoint = *endpoint;
  source.server.tls.host = endpoint->host;
  if (measure::is_https(url)) {
    auto tls = measure::TlsContext::create(
        plan.grpc ? measure::TlsOptions() : plan.tls.value_or(measure::TlsOptions()),
        measure::TlsContext::Protocol::kHttp1);
    if (!tls.ok()) {
      return tls.error();
    }
    source.server.tls.context = *std::move(tls);
  }
  // Resolved once: "localhost" may be an address that the server does not have.
  if (const auto address_of = os::reachable_address(*endpoint, kConnectTimeoutMs);
      address_of.ok()) {
    source.server.endpoint = *address_of;
  }
  return std::optional(source);
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
  options.grpc_compression = plan.grpc_compression;
  options.keep_times = !words.output.profile_file.empty();
  options.called_models = plan.parts;
  options.trace = words.arguments.trace;
  options.shared_memory = plan.shared_memory;
  options.output_shared_memory_bytes = words.output_shared_memory_bytes;
  options.live_sequences = words.arguments.live_sequences;
  options.sequence.length = words.arguments.sequence_length;
  options.sequence.length_variation_percent = words.arguments.sequence_length_variation;
  options.sequence.first_id = plan.first_sequence_id;
  options.sequence.last_id = plan.last_sequence_id;
  return options;
}

Result<std::unique_ptr<measure::LoadGenerator>> open_generator(const measure::PerfPlan& plan,
                                                               const PerfWords& words,
                                                               const measure::Target& target,
                                                               const std::vector<Duration>& gaps) {
  measure::GeneratorOptions options = generator_options(plan, words, gaps);
  Result<std::optional<measure::MetricsSource>> metrics = metrics_source(plan);
  if (!metrics.ok()) {
    return metrics.error();
  }
  options.metrics = *std::move(metrics);
  Result<std::unique_ptr<measure::LoadGenerator>> generator =
      measure::LoadGenerator::open(target, plan.input, plan.rules, options);
  if (generator.ok()) {
    for (const std::string& name : (*generator)->description().missing_metrics) {
      fmt::print(stderr, "WARNING: Unable to parse '{}' metric.\n", name);
    }
  }
  return generator;
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
    format_.gpu_columns = plan.metrics.has_value();
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

  Result<Ok> run(const PerfOutput& output, const std::atomic<bool>& stop) {
    if (!output.csv_file.empty()) {
      SEPTET_TRY(open_files(output.csv_file));
    }
    if (!output.profile_file.empty()) {
      Result<os::AppendFile> profile = os::AppendFile::create(output.profile_file);
      if (!profile.ok()) {
        return profile.error();
      }
      profile_.emplace(*std::move(profile));
      SEPTET_TRY(profile_->append(measure::kProfileBegin));
    }
    fmt::print("{}", measure::perf_settings_text(plan_));
    measure::run_sweep(generator_, plan_.sweep(), stop,
                       [this](const measure::LevelResult& result) { add(result); });
    fmt::print("{}", measure::perf_summary_text(plan_, results_));
    if (profile_ && written_.ok()) {
      written_ = profile_->append(measure::profile_end(context_.version));
    }
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
    if (format_.server_columns) {
      SEPTET_TRY(open_part_files(csv_file));
    }
    Result<os::AppendFile> open_form = os::AppendFile::create(csv_file + ".jsonl");
    if (!open_form.ok()) {
      return open_form.error();
    }
    open_form_.emplace(*std::move(open_form));
    return Ok{};
  }

  Result<Ok> open_part_files(const std::string& csv_file) {
    for (const measure::ModelPart& part : plan_.parts) {
      Result<os::AppendFile> file =
          os::AppendFile::create(measure::perf_part_csv_file(csv_file, part));
      if (!file.ok()) {
        return file.error();
      }
      part_csvs_.push_back(*std::move(file));
      SEPTET_TRY(part_csvs_.back().append(
          measure::perf_part_csv_header(format_, part.has_response_cache)));
    }
    return Ok{};
  }

  // A file that can no longer be written must not end the measurement: the console still has it.
  void add(const measure::LevelResult& result) {
    fmt::print("{}", measure::perf_level_text(plan_, result));
    std::fflush(stdout);
    if (csv_ && written_.ok()) {
      written_ = csv_->append(measure::perf_csv_row(format_, result));
    }
    for (std::size_t i = 0; i < part_csvs_.size() && written_.ok(); ++i) {
      written_ = part_csvs_[i].append(
          measure::perf_part_csv_row(result, i, plan_.parts[i].has_response_cache));
    }
    if (open_form_ && written_.ok()) {
      context_.unix_time_ns = os::unix_time_ns();
      written_ = open_form_->append(measure::level_json(result, context_));
    }
    if (profile_ && written_.ok()) {
      const std::int64_t zero_ns = os::unix_time_ns() - os::now().time_since_epoch().count();
      written_ =
          profile_->append((results_.empty() ? "" : ",") +
                           measure::profile_level(result.level, generator_.take_times(), zero_ns));
    }
    results_.push_back(result);
  }

  const measure::PerfPlan& plan_;
  measure::LoadGenerator& generator_;
  measure::PerfCsvFormat format_;
  measure::MeasurementContext context_;
  std::optional<os::AppendFile> csv_;
  std::optional<os::AppendFile> profile_;
  std::vector<os::AppendFile> part_csvs_;  // in the order of the plan's parts
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

// Open MPI, then MPICH and its kin, say how many processes mpirun started.
Result<Ok> note_mpi(const PerfWords& words) {
  if (!words.enable_mpi) {
    return Ok{};
  }
  const char* processes = std::getenv("OMPI_COMM_WORLD_SIZE");
  SEPTET_TRY(measure::check_mpi(processes != nullptr ? processes : std::getenv("PMI_SIZE")));
  fmt::print(stderr, "WARNING: --enable-mpi has no effect: this process measures alone.\n");
  return Ok{};
}

int run_perf(const PerfWords& words, OutputFormat format) {
  const Result<std::unique_ptr<os::Interrupt>> interrupt = os::Interrupt::start();
  if (!interrupt.ok()) {
    return fail(interrupt.error(), format);
  }
  if (const Result<Ok> offered = check_refused_words(words); !offered.ok()) {
    return fail(offered.error(), format);
  }
  if (const Result<Ok> alone = note_mpi(words); !alone.ok()) {
    return fail(alone.error(), format);
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
  const Result<std::unique_ptr<measure::LoadGenerator>> generator =
      open_generator(*plan, words, *target, *gaps);
  if (!generator.ok()) {
    return fail(generator.error(), format);
  }
  plan->note_model((*generator)->description().model);
  PerfRun run(*plan, words, **generator);
  if (const Result<Ok> done = run.run(words.output, (*interrupt)->requested()); !done.ok()) {
    return fail(done.error(), format);
  }
  return run.measured_anything() ? 0 : fail(nothing_measured(run.results()), format);
}

}  // namespace

void add_perf(CLI::App& app, const Globals& globals, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "perf", "Measure throughput and latency of a model, as perf_analyzer does");
  auto words = std::make_shared<PerfWords>();
  add_perf_words(*verb, *words);
  verb->callback([words, &globals, &action] {
    action = [words, &globals] { return run_perf(*words, globals.output); };
  });
}

}  // namespace septet::app
