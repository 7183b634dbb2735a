#include "agent/edge/isolation_run.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "measure/edge/load_generator.h"
#include "os/clock.h"

namespace septet::agent {
namespace {

constexpr Duration kSlice = seconds(1);  // of measuring, between looks at whether to go on
constexpr int kLookMs = 20;

measure::MeasurementRules rules() {
  measure::MeasurementRules rules;
  rules.window = kSlice;
  rules.window_stretch = 1;
  rules.max_windows = 1;
  rules.request_timeout = seconds(30);
  return rules;
}

// A client for each replica (or for each caller of the one server). They are opened before the
// fault, because a server that is being ended describes no model.
using Generators = std::vector<std::unique_ptr<measure::LoadGenerator>>;

Result<Generators> open_generators(std::size_t count, const std::vector<os::Endpoint>& endpoints,
                                   const IsolationOptions& options) {
  Generators generators;
  for (std::size_t i = 0; i < count; ++i) {
    measure::Target target;
    target.endpoints = {endpoints[i % endpoints.size()]};
    target.model = options.deployment.model;
    measure::InputOptions input;
    input.seed = options.seed;
    auto generator =
        measure::LoadGenerator::open(target, input, rules(), measure::GeneratorOptions{});
    if (!generator.ok()) {
      return generator.error();
    }
    generators.push_back(*std::move(generator));
  }
  return generators;
}

// One client's figures over the slices of time it measured.
class Sum {
 public:
  void add(const measure::LevelResult& level) {
    total_.completed += level.completed;
    total_.failed += level.failures.total();
    measured_ += level.measured;
    latency_.merge(level.latency);
  }
  ClientMeasurement figures() const {
    ClientMeasurement result = total_;
    if (result.completed > 0 && measured_ > Duration::zero()) {
      result.throughput = static_cast<double>(result.completed) / to_seconds(measured_);
      result.p90_us = latency_.percentile_ns(90) / 1e3;
    }
    return result;
  }

 private:
  ClientMeasurement total_;
  Duration measured_{};
  measure::Histogram latency_;
};

// All clients side by side, each in a thread of its own, until `wait` returns.
std::vector<ClientMeasurement> measure_while(Generators& generators,
                                             const IsolationOptions& options,
                                             const std::atomic<bool>& interrupted,
                                             const std::function<void()>& wait) {
  std::atomic<bool> done = false;
  std::vector<Sum> sums(generators.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < generators.size(); ++i) {
    threads.emplace_back([&, i] {
      while (!done && !interrupted) {
        sums[i].add(generators[i]->run_level(
            {.mode = measure::LoadMode::kConcurrency, .value = double(options.concurrency)},
            interrupted));
      }
    });
  }
  wait();
  done = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::vector<ClientMeasurement> measured;
  for (const Sum& sum : sums) {
    measured.push_back(sum.figures());
  }
  return measured;
}

// Waits until the instant, or until the condition holds.
bool wait_until(Instant deadline, const std::atomic<bool>& interrupted,
                const std::function<bool()>& condition) {
  while (!interrupted && os::now() < deadline) {
    if (condition()) {
      return true;
    }
    poll(nullptr, 0, kLookMs);
  }
  return false;
}

// A quarter more than a replica takes now and a little: to outgrow a slice of a real GPU's size
// would take long on a small machine, and show the same.
std::int64_t slice_memory(const Deployment& deployment) {
  constexpr std::int64_t kLittle = 16LL << 20;
  const auto processes = static_cast<std::int64_t>(deployment.replica_names().size());
  return deployment.usage().memory_bytes / processes * 5 / 4 + kLittle;
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
  Result<Generators> clients = open_generators(count, endpoints, options);
  if (!clients.ok()) {
    return clients.error();
  }
  const std::int64_t slice_bytes = slice_memory(**deployment);
  SEPTET_TRY((*deployment)->scale_memory(slice_bytes));
  const auto never = [] { return false; };
  const auto measured_before = measure_while(*clients, options, interrupted, [&] {
    wait_until(os::now() + options.before, interrupted, never);
  });
  SEPTET_TRY((*deployment)->replicas().send_signal(names.front(), SIGUSR2));
  const auto measured_during = measure_while(*clients, options, interrupted, [&] {
    const auto ended = [&] { return (*deployment)->usage().out_of_memory_kills > 0; };
    if (wait_until(os::now() + options.longest, interrupted, ended)) {
      wait_until(os::now() + options.after_end, interrupted, never);
    }
  });
  if (interrupted) {
    return make_error(ErrorKind::kFailed, "the isolation experiment was interrupted");
  }

  IsolationOutcome outcome;
  outcome.sharing = configuration.sharing;
  outcome.slice_memory_mib = slice_bytes >> 20;
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
