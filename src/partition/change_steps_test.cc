#include "partition/change_steps.h"

#include <gmock/gmock.h>

#include "gpu/simulated_driver.h"

namespace septet::partition {
namespace {

// An A100 with a 3g.20gb at 4 that holds three compute instances of one slice, ids 0 to 2.
gpu::GpuState three_small() {
  gpu::SimulatedNode node = *gpu::make_simulated_node("A100-SXM4-40GB");
  gpu::GpuState state = gpu::state_of(node.gpus[0]);
  state.mig_current = state.mig_pending = gpu::MigMode::kEnabled;
  gpu::GpuInstance instance;
  instance.id = gpu::GpuInstanceId(1);
  instance.profile_id = gpu::ProfileId(9);
  instance.placement = {4, 4};
  for (unsigned i = 0; i < 3; ++i) {
    gpu::ComputeInstance compute;
    compute.id = gpu::ComputeInstanceId(i);
    compute.placement = {i, 1};
    instance.compute_instances.push_back(compute);
  }
  state.instances = {instance};
  return state;
}

Layout with_compute(std::vector<unsigned> compute) {
  return {.mode = gpu::MigMode::kEnabled,
          .instances = {{gpu::ProfileId(9), "3g.20gb", {4, 4}, std::move(compute)}}};
}

TEST(ChangeSteps, SpareTheBusyComputeInstance) {
  for (unsigned busy = 0; busy < 3; ++busy) {
    gpu::GpuState state = three_small();
    gpu::GpuProcess process;
    process.gpu_instance = gpu::GpuInstanceId(1);
    process.compute_instance = gpu::ComputeInstanceId(busy);
    state.processes = {process};

    const StepList list = steps_to(state, with_compute({1}), layout_of(state));

    ASSERT_EQ(list.size(), 2U);
    for (const ChangeStep& step : list.steps) {
      EXPECT_NE(std::get<DestroyCompute>(step).compute, gpu::ComputeInstanceId(busy));
    }
  }
}

TEST(ChangeSteps, NeverCallWhatCannotFitDone) {
  const gpu::GpuState state = three_small();

  EXPECT_NE(steps_to(state, with_compute({3, 3}), layout_of(state)).size(), 0U);
}

TEST(ChangeSteps, LeaveForeignInstancesAlone) {
  const gpu::GpuState state = three_small();

  const StepList list = steps_to(state, Layout{}, Layout{});

  EXPECT_EQ(list.size(), 0U);
  EXPECT_THAT(list.foreign, testing::ElementsAre("3g.20gb@4"));
}

TEST(ChangeSteps, DestroyBeforeTheModeGoesOff) {
  const gpu::GpuState state = three_small();
  const Layout off{.mode = gpu::MigMode::kDisabled, .instances = {}};

  const StepList list = steps_to(state, off, layout_of(state));

  ASSERT_EQ(list.size(), 5U);
  EXPECT_TRUE(std::holds_alternative<DestroyCompute>(list.steps.front()));
  EXPECT_TRUE(std::holds_alternative<SetMode>(list.steps.back()));
}

}  // namespace
}  // namespace septet::partition
