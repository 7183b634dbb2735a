// Planner and apply, measured: one plan of one GPU, of sixteen, an impossible one; and what apply
// adds to the driver's own time per step. Run through tests/bench/partition.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "gpu/simulated_driver.h"
#include "os/clock.h"
#include "os/owned_folder.h"
#include "partition/edge/apply.h"
#include "partition/fleet.h"

namespace septet {
namespace {

using partition::Want;

Want want(const std::string& text) {
  return *partition::parse_want(std::vector<std::string>{text});
}

std::vector<gpu::GpuState> node_states(const std::string& specification, const std::string& has) {
  gpu::SimulatedNode node = *gpu::make_simulated_node(specification);
  gpu::SimulatedDriver driver(node);
  auto folder = os::OwnedFolder::create("bench");
  std::vector<gpu::GpuState> states;
  for (unsigned index = 0; index < node.gpus.size(); ++index) {
    const partition::ApplyOptions options{.state = partition::StateFolder((*folder)->path())};
    CHECK(has.empty() || partition::apply_want(driver, index, want(has), options).ok());
    states.push_back(*driver.observe(index));
  }
  return states;
}

void plan_one(benchmark::State& state, const std::string& model, const std::string& has,
              const std::string& wanted) {
  const gpu::GpuState gpu = node_states(model, has).front();
  const Want parsed = want(wanted);
  for (auto step : state) {
    benchmark::DoNotOptimize(partition::plan_gpu(gpu, parsed, {}));
  }
}

void plan_sixteen(benchmark::State& state, const std::string& has, const std::string& wanted,
                  partition::Distribution distribution) {
  const auto gpus = node_states("A100-SXM4-40GBx16", has);
  const Want parsed = want(wanted);
  for (auto step : state) {
    const auto plans = partition::plan_fleet(gpus, parsed, {}, distribution);
    CHECK(plans.ok());
    benchmark::DoNotOptimize(plans);
  }
}

// The driver's own time is counted and taken away: what is left is septet's.
class TimedDriver : public gpu::SimulatedDriver {
 public:
  explicit TimedDriver(gpu::SimulatedNode& node) : SimulatedDriver(node) {}
  template <typename Call>
  auto timed(const Call& call) {
    const Instant start = os::now();
    auto result = call();
    spent += os::now() - start;
    return result;
  }
  Result<gpu::GpuState> observe(unsigned index) override {
    return timed([&] { return SimulatedDriver::observe(index); });
  }
  Result<Ok> set_mig_mode(unsigned index, gpu::MigMode mode) override {
    return timed([&] { return SimulatedDriver::set_mig_mode(index, mode); });
  }
  Result<gpu::GpuInstance> create_gpu_instance(unsigned index, gpu::ProfileId profile,
                                               gpu::Placement placement) override {
    return timed([&] { return SimulatedDriver::create_gpu_instance(index, profile, placement); });
  }
  Result<Ok> destroy_gpu_instance(unsigned index, gpu::GpuInstanceId instance) override {
    return timed([&] { return SimulatedDriver::destroy_gpu_instance(index, instance); });
  }
  Duration spent{0};
};

void apply_step(benchmark::State& state, const std::string& parent) {
  auto folder = os::OwnedFolder::create("bench", parent);
  CHECK(folder.ok());
  gpu::SimulatedNode node = *gpu::make_simulated_node("A100-SXM4-40GB");
  const partition::ApplyOptions options{.state = partition::StateFolder((*folder)->path())};
  const std::vector<Want> wants = {want("1g.5gb:7"), want("1g.5gb:2 2g.10gb 3g.20gb")};
  double steps = 0;
  double added_seconds = 0;
  std::size_t next = 0;
  for (auto step : state) {
    TimedDriver driver(node);
    const Instant start = os::now();
    const auto report = partition::apply_want(driver, 0, wants[next++ % 2], options);
    CHECK(report.ok() && !partition::error_of(*report));
    added_seconds += to_seconds(os::now() - start - driver.spent);
    steps += static_cast<double>(report->driver_calls);
  }
  state.counters["added_ms_per_step"] = 1000 * added_seconds / steps;
}

BENCHMARK_CAPTURE(plan_one, empty_7x1g, "A100-SXM4-40GB", "", "1g.5gb:7");
BENCHMARK_CAPTURE(plan_one, change_7x1g, "A100-SXM4-40GB", "1g.5gb:7", "1g.5gb:2 2g.10gb 3g.20gb");
BENCHMARK_CAPTURE(plan_one, flexible, "A100-SXM4-40GB", "1g.5gb:7", ">=1g:3 >=10GB:2");
BENCHMARK_CAPTURE(plan_one, twelve_units, "RTX-PRO-6000", "1g.24gb:4", "2g.48gb 1g.24gb+me 1g");
BENCHMARK_CAPTURE(plan_one, impossible, "A100-SXM4-40GB", "1g.5gb:7", "4g.20gb 2g.10gb:2");
BENCHMARK_CAPTURE(plan_sixteen, pack_112, "", "1g.5gb:112", partition::Distribution::kPack)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan_sixteen, spread_mixed, "1g.5gb:7", "3g.20gb:16 2g.10gb:16 1g.5gb:32",
                  partition::Distribution::kSpread)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(apply_step, in_memory, "/dev/shm")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(apply_step, on_disk, "/var/tmp")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace septet

BENCHMARK_MAIN();
