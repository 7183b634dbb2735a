#include "agent/edge/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "measure/edge/load_generator.h"
#include "measure/perf_csv.h"
#include "os/clock.h"
#include "os/durable_file.h"

namespace septet::agent {
namespace {

constexpr Duration kExpectedSetUp = seconds(8);

// What one level takes at most, for the first estimate.
Duration expected_cell(const measure::MeasurementRules& rules) {
  return rules.warm_up + from_seconds(to_seconds(rules.window) * rules.window_stretch *
                                      std::max(1, rules.max_windows));
}

// A file that begins with the header; what an earlier run left there is not mixed with this one's.
Result<os::AppendFile> new_file(const std::string& path, const std::string& header) {
  Result<os::AppendFile> file = os::AppendFile::create(path);
  if (file.ok()) {
    SEPTET_TRY(file->append(header));
  }
  return file;
}

class Experiment {
 public:
  Experiment(gpu::GpuDriver& driver, const ExperimentPlan& plan, const ExperimentOptions& options,
             const std::atomic<bool>& interrupted,
             const std::function<void(const ExperimentProgress&)>& tell, os::AppendFile results)
      : driver_(driver),
        plan_(plan),
        options_(options),
        interrupted_(interrupted),
        tell_(tell),
        results_(std::move(results)),
        time_left_(plan, kExpectedSetUp, expected_cell(options.rules)) {
    outcome_.report = options.report;
    outcome_.report.notes.insert(outcome_.report.notes.end(), plan.notes.begin(), plan.notes.end());
  }

  Result<ExperimentResult> run() {
    for (const PlannedConfiguration& configuration : plan_.configurations) {
      if (interrupted_) {
        break;
      }
      const std::size_t rows_before = outcome_.report.rows.size();
      const Result<Ok> measured = run_configuration(configuration);
      if (!measured.ok() && !interrupted_) {
        pass_over(configuration, measured.error());
      }
      time_left_.cells_skipped(plan_.concurrency.size() -
                               (outcome_.report.rows.size() - rows_before));
      SEPTET_TRY(write_report());
    }
    outcome_.interrupted = interrupted_;
    if (interrupted_) {
      outcome_.report.notes.emplace_back(fmt::format("Interrupted: {} of {} cells were measured.",
                                                     time_left_.cells_done(), plan_.cells()));
      SEPTET_TRY(write_report());
    }
    return std::move(outcome_);
  }

 private:
  Result<Ok> run_configuration(const PlannedConfiguration& configuration) {
    report_progress(configuration, nullptr, nullptr);
    DeploymentOptions deployment_options = options_.deployment;
    deployment_options.log_folder = options_.out_folder + "/" + configuration.name();
    SEPTET_TRY(os::make_folder(deployment_options.log_folder));
    const Instant begin = os::now();
    Result<std::unique_ptr<Deployment>> deployment =
        Deployment::start(driver_, configuration, deployment_options, interrupted_);
    time_left_.set_up_done(os::now() - begin);
    if (!deployment.ok()) {
      return deployment.error();
    }
    return measure(configuration, **deployment);
  }

  Result<Ok> measure(const PlannedConfiguration& configuration, const Deployment& deployment) {
    measure::Target target;
    target.endpoints = {deployment.endpoint()};
    target.model = options_.deployment.model;
    measure::InputOptions input;
    input.seed = options_.context.seed;
    Result<std::unique_ptr<measure::LoadGenerator>> generator =
        measure::LoadGenerator::open(target, input, options_.rules, measure::GeneratorOptions{});
    if (!generator.ok()) {
      return generator.error();
    }
    const measure::PerfCsvFormat format{
        .percentile = options_.rules.percentile,
        .server_columns = (*generator)->description().has_statistics(),
        .cache_columns = (*generator)->description().model.has_response_cache};
    Result<os::AppendFile> perf_csv =
        new_file(fmt::format("{}/{}/perf.csv", options_.out_folder, configuration.name()),
                 measure::perf_csv_header(format));
    if (!perf_csv.ok()) {
      return perf_csv.error();
    }
    for (const int concurrency : plan_.concurrency) {
      const Instant begin = os::now();
      const measure::LevelResult level =
          (*generator)
              ->run_level({.mode = measure::LoadMode::kConcurrency, .value = double(concurrency)},
                          interrupted_);
      if (level.interrupted) {
        break;  // a cell cut short says something else than the others
      }
      SEPTET_TRY(perf_csv->append(measure::perf_csv_row(format, level)));
      SEPTET_TRY(keep(configuration, level));
      time_left_.cell_done(os::now() - begin);
      report_progress(configuration, &outcome_.report.rows.back(), nullptr);
    }
    return Ok{};
  }

  Result<Ok> keep(const PlannedConfiguration& configuration, const measure::LevelResult& level) {
    measure::ResultContext context = options_.context;
    context.technique = to_string(configuration.sharing);
    context.replicas = configuration.replicas;
    if (configuration.sharing != Sharing::kMig) {
      context.profile.clear();
    } else if (!configuration.profile.empty()) {
      context.profile = configuration.profile;
    }
    outcome_.report.rows.push_back(measure::result_row(context, level));
    return results_.append(measure::results_line(outcome_.report.rows.back()));
  }

  void pass_over(const PlannedConfiguration& configuration, const Error& error) {
    ++outcome_.failed_configurations;
    outcome_.report.notes.push_back(fmt::format("Not measured: {} with {} replicas: {}.",
                                                to_string(configuration.sharing),
                                                configuration.replicas, error.message));
    report_progress(configuration, nullptr, &error);
  }

  void report_progress(const PlannedConfiguration& configuration, const measure::ResultRow* row,
                       const Error* error) {
    tell_({.configuration = configuration,
           .row = row,
           .error = error,
           .cells_done = time_left_.cells_done(),
           .cells = time_left_.cells(),
           .left = time_left_.left()});
  }

  Result<Ok> write_report() {
    return os::replace_file(options_.out_folder + "/report.html",
                            measure::report_page(outcome_.report));
  }

  gpu::GpuDriver& driver_;
  const ExperimentPlan& plan_;
  const ExperimentOptions& options_;
  const std::atomic<bool>& interrupted_;
  const std::function<void(const ExperimentProgress&)>& tell_;
  os::AppendFile results_;
  TimeLeft time_left_;
  ExperimentResult outcome_;
};

}  // namespace

Result<ExperimentResult> run_experiment(
    gpu::GpuDriver& driver, const ExperimentPlan& plan, const ExperimentOptions& options,
    const std::atomic<bool>& interrupted,
    const std::function<void(const ExperimentProgress&)>& tell) {
  SEPTET_TRY(os::make_folder(options.out_folder));
  const std::string results_file = options.out_folder + "/results.csv";
  if (const Result<std::string> old = os::read_whole_file(results_file);
      old.ok() && old->size() > measure::results_header().size()) {
    return make_error(ErrorKind::kPrecondition,
                      fmt::format("{} holds the results of an earlier run", results_file),
                      "name another folder with --out, or remove it");
  }
  Result<os::AppendFile> results = new_file(results_file, measure::results_header());
  if (!results.ok()) {
    return results.error();
  }
  return Experiment(driver, plan, options, interrupted, tell, *std::move(results)).run();
}

}  // namespace septet::agent
