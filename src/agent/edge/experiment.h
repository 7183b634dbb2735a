// Runs an experiment: every configuration of a plan at every level of load, each result on the disk
// as soon as it is measured.
//
//   OUT/results.csv            one row for each configuration and level
//   OUT/mig-7/perf.csv         one file for each configuration, as perf_analyzer writes it
//   OUT/mig-7/partition-0.log  what the replicas said
//   OUT/report.html            written after every configuration
//
// Blocking; called by a verb. Nothing measured is lost by a later failure or a Ctrl-C: a
// configuration that cannot be run is reported, noted and passed over.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "agent/edge/deployment.h"
#include "agent/experiment_plan.h"
#include "base/result.h"
#include "gpu/gpu_driver.h"
#include "measure/measurement_rules.h"
#include "measure/report.h"
#include "measure/results.h"

namespace septet::agent {

struct ExperimentOptions {
  DeploymentOptions deployment;  // log_folder is set for each configuration
  std::string out_folder;
  measure::MeasurementRules rules;
  // Technique and replicas are set for each configuration; the profile is that of partitions.
  measure::ResultContext context;
  measure::ReportInput report;  // rows and notes are added
};

struct ExperimentProgress {
  const PlannedConfiguration& configuration;
  const measure::ResultRow* row = nullptr;  // of the finished level; null: being set up
  const Error* error = nullptr;             // why the configuration is passed over
  std::size_t cells_done = 0;
  std::size_t cells = 0;
  Duration left{};
};

struct ExperimentResult {
  measure::ReportInput report;  // with all rows and notes
  std::size_t failed_configurations = 0;
  bool interrupted = false;
};

// The error is about the output folder; everything else is in the result.
Result<ExperimentResult> run_experiment(gpu::GpuDriver& driver, const ExperimentPlan& plan,
                                        const ExperimentOptions& options,
                                        const std::atomic<bool>& interrupted,
                                        const std::function<void(const ExperimentProgress&)>& tell);

}  // namespace septet::agent
