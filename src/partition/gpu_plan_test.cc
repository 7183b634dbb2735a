#include "partition/gpu_plan.h"

#include <gmock/gmock.h>

#include "gpu/simulated_driver.h"
#include "gpu/simulated_instances.h"

namespace septet::partition {
namespace {

using testing::HasSubstr;

class PlanOfAGpu : public testing::Test {
 protected:
  void SetUp() override {
    node_ = *gpu::make_simulated_node("A100-SXM4-40GB");
    gpu().mig_current = gpu().mig_pending = true;
  }
  gpu::SimulatedGpu& gpu() { return node_.gpus[0]; }
  gpu::GpuState state() { return gpu::state_of(gpu()); }

  void create(unsigned profile, unsigned start, unsigned size) {
    gpu::GpuInstance instance;
    gpu::ComputeInstance compute;
    ASSERT_EQ(gpu::create_gpu_instance(gpu(), gpu::ProfileId(profile), gpu::Placement{start, size},
                                       instance),
              gpu::NvmlCode::kSuccess);
    const auto profiles = gpu::compute_profiles_of(gpu(), *gpu::find_instance(gpu(), instance.id));
    ASSERT_EQ(
        gpu::create_compute_instance(gpu(), instance.id, profiles.back().id, std::nullopt, compute),
        gpu::NvmlCode::kSuccess);
  }
  void hold(std::size_t position) {
    gpu::SimulatedClient client;
    client.pid = 77;
    client.name = "jupyter";
    client.gpu_instance = gpu().instances[position].id.value();
    client.compute_instance = 0U;
    ASSERT_EQ(gpu::attach_client(gpu(), client), gpu::NvmlCode::kSuccess);
  }
  Want want(const std::string& text) { return *parse_want(std::vector<std::string>{text}); }

  gpu::SimulatedNode node_;
};

TEST_F(PlanOfAGpu, DefragmentsByMovingIdleInstances) {
  create(19, 0, 1);  // in the way of every large instance
  const auto plan = plan_defragment(state(), {});

  ASSERT_TRUE(plan.ok()) << plan.error().text();
  EXPECT_EQ(to_string(plan->after), "1g.5gb@6");
  EXPECT_EQ(plan->plan.destroy.size(), 1U);
}

TEST_F(PlanOfAGpu, DefragmentsAroundWhatIsBusy) {
  create(19, 0, 1);
  create(19, 4, 1);
  hold(0);

  const auto plan = plan_defragment(state(), {});

  ASSERT_TRUE(plan.ok()) << plan.error().text();
  ASSERT_EQ(plan->plan.keep.size(), 1U);
  EXPECT_EQ(plan->plan.keep[0].occupancy, Occupancy::kBusy);
}

TEST_F(PlanOfAGpu, DefragmentsNothingWhenNothingHelps) {
  create(9, 4, 4);

  const auto plan = plan_defragment(state(), {});

  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->plan.changes_nothing());
}

TEST_F(PlanOfAGpu, AddsByMovingWhatIsIdle) {
  create(19, 1, 1);

  const auto fixed = plan_gpu(state(), want("4g.20gb"), {.policy = ExistingPolicy::kKeep});
  const auto moved = plan_gpu(state(), want("4g.20gb"), {.keep_by_moving = true});

  ASSERT_FALSE(fixed.ok());
  EXPECT_THAT(fixed.error().hint, HasSubstr("--move"));
  ASSERT_TRUE(moved.ok()) << moved.error().text();
  EXPECT_EQ(moved->after.instances.size(), 2U);
}

TEST_F(PlanOfAGpu, NeverMovesWhatIsBusy) {
  create(19, 1, 1);
  hold(0);

  const auto plan = plan_gpu(state(), want("4g.20gb"), {.keep_by_moving = true});

  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().kind, ErrorKind::kPrecondition);
  EXPECT_THAT(plan.error().message, HasSubstr("jupyter (pid 77)"));
}

TEST_F(PlanOfAGpu, UsesTheTableWhenTheDriverIsSilent) {
  gpu::GpuState silent = state();
  silent.profiles.clear();
  silent.mig_current = silent.mig_pending = gpu::MigMode::kDisabled;

  const auto plan = plan_gpu(silent, want("1g.5gb:7"), {});

  ASSERT_TRUE(plan.ok()) << plan.error().text();
  ASSERT_EQ(plan->notes.size(), 1U);
  EXPECT_THAT(plan->notes[0], HasSubstr("A100-SXM4-40GB"));
}

TEST_F(PlanOfAGpu, PlansALayoutOfAnotherDriverByName) {
  const Layout layout{.mode = gpu::MigMode::kEnabled,
                      .instances = {{gpu::ProfileId(99), "3g.21gb", {4, 4}, {3}}}};

  const auto plan = plan_layout(state(), layout, {});

  ASSERT_TRUE(plan.ok()) << plan.error().text();
  EXPECT_EQ(to_string(plan->after), "3g.20gb@4");
}

}  // namespace
}  // namespace septet::partition
