#include "agent/edge/isolation_run.h"

#include <fmt/format.h>
#include <signal.h>

#include <memory>
#include <thread>
#include <vector>

#include "measure/edge/load_generator.h"

namespace septet::agent {
namespace {

measure::MeasurementRules rules(Duration time) {
  measure::MeasurementRules rules;
  rules.window = time;
  rules.window_stretch = 1;
  rules.max_windows = 1;
  rules.request_timeout = seconds(30);
  return rules;
}

// A client for each replica (or for each caller of the one server). They are opened before the
// fault, because a server that is being ended describes no model.
using Generators = std::vector<std::unique_ptr<measure::LoadGenerator>>;

Result<Generators> open_generators(std::size_t count, const std::vector<os::Endpoint>& endpoints,
                                   const IsolationOptions& options, Duration time) {
  Generators generators;
  for (std::size_t i = 0; i < count; ++i) {
    measure::Target target;
    target.endpoints = {endpoints[i % endpoints.size()]};
    target.model = options.deployment.model;
    measure::InputOptions input;
    input.seed = options.seed;
    auto generator =
        measure::LoadGenerator::open(target, input, rules(time), measure::GeneratorOptions{});
    if (!generator.ok()) {
      return generator.error();
    }
    generators.push_back(*std::move(generator));
  }
  return generators;
}

// All clients side by side, each in a thread of its own.
std::vector<ClientMeasurement> measure_all(Generators& generators, const IsolationOptions& options,
                                           const std::atomic<bool>& interrupted) {
  std::vector<ClientMeasurement> measured(generators.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < generators.size(); ++i) {
    threads.emplace_back([&, i] {
      const measure::LevelResult level = generators[i]->run_level(
          {.mode = measure::LoadMode::kConcurrency, .value = double(options.concurrency)},
          interrupted);
      measured[i] = {.completed = level.completed,
                     .failed = level.failures.total(),
                     .throughput = level.throughput,
                     .p90_us = level.completed > 0 ? level.p90_us() : 0};
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return measured;
}

}  // namespace

Result<IsolationOutcome> run_isolation(gpu::GpuDriver& driver,
                                       const PlannedConfiguration& configuration,
                                       const IsolationOptions& options,
                                       const std::atomic<bool>& interrupted) {
  DeploymentOptions deployment_options = options.deployment;
  deployment_options.first_replica_extra = {"--fault-allocate",
                                            std::to_string(options.growth_mib_per_second)};
  Result<std::unique_ptr<Deployment>> deployment =
      Deployment::start(driver, configuration, deployment_options, interrupted);
  if (!deployment.ok()) {
    return deployment.error();
  }
  const std::vector<os::Endpoint> endpoints = (*deployment)->replica_endpoints();
  const std::vector<std::string> names = (*deployment)->replica_names();
  const auto count = static_cast<std::size_t>(configuration.replicas);
  Result<Generators> before = open_generators(count, endpoints, options, options.before);
  Result<Generators> during = open_generators(count, endpoints, options, options.during);
  if (!before.ok() || !during.ok()) {
    return before.ok() ? during.error() : before.error();
  }
  const auto measured_before = measure_all(*before, options, interrupted);
  before->clear();  // its connections would be broken by the fault
  SEPTET_TRY((*deployment)->replicas().send_signal(names.front(), SIGUSR2));
  const auto measured_during = measure_all(*during, options, interrupted);
  if (interrupted) {
    return make_error(ErrorKind::kFailed, "the isolation experiment was interrupted");
  }

  IsolationOutcome outcome;
  outcome.sharing = configuration.sharing;
  outcome.out_of_memory_kills = (*deployment)->usage().out_of_memory_kills;
  for (const ReplicaStatus& status : (*deployment)->replicas().status()) {
    outcome.restarts += status.restarts;
  }
  for (std::size_t i = 0; i < count; ++i) {
    outcome.clients.push_back(
        {.replica = names.size() == count ? names[i] : fmt::format("client-{}", i),
         .at_the_fault = i == 0,
         .before = measured_before[i],
         .during = measured_during[i]});
  }
  return outcome;
}

}  // namespace septet::agent
