#include "partition/fleet.h"

#include <gmock/gmock.h>

#include "gpu/simulated_driver.h"

namespace septet::partition {
namespace {

std::vector<gpu::GpuState> fleet_of(const std::string& specification) {
  gpu::SimulatedNode node = *gpu::make_simulated_node(specification);
  std::vector<gpu::GpuState> states;
  for (gpu::SimulatedGpu& gpu : node.gpus) {
    gpu.mig_current = gpu.mig_pending = true;
    states.push_back(gpu::state_of(gpu));
  }
  return states;
}

Want want(const std::string& text) { return *parse_want(std::vector<std::string>{text}); }

std::vector<std::size_t> created(const std::vector<GpuPlan>& plans) {
  std::vector<std::size_t> counts;
  for (const GpuPlan& plan : plans) {
    counts.push_back(plan.plan.create.size());
  }
  return counts;
}

TEST(Fleet, PacksOnTheFewestGpus) {
  const auto plans =
      plan_fleet(fleet_of("A100-SXM4-40GBx4"), want("1g.5gb:9"), {}, Distribution::kPack);

  ASSERT_TRUE(plans.ok()) << plans.error().text();
  EXPECT_THAT(created(*plans), testing::ElementsAre(7, 2, 0, 0));
}

TEST(Fleet, SpreadsEvenly) {
  const auto plans =
      plan_fleet(fleet_of("A100-SXM4-40GBx4"), want("1g.5gb:9"), {}, Distribution::kSpread);

  ASSERT_TRUE(plans.ok()) << plans.error().text();
  EXPECT_THAT(created(*plans), testing::UnorderedElementsAre(3, 2, 2, 2));
}

TEST(Fleet, GivesEachGpuEverything) {
  const auto plans =
      plan_fleet(fleet_of("A100-SXM4-40GBx2"), want("3g.20gb:2"), {}, Distribution::kEach);

  ASSERT_TRUE(plans.ok()) << plans.error().text();
  EXPECT_THAT(created(*plans), testing::ElementsAre(2, 2));
}

TEST(Fleet, FillsGpusToTheLastSlice) {
  const auto plans = plan_fleet(fleet_of("A100-SXM4-40GBx4"), want("4g.20gb:4 3g.20gb:4"), {},
                                Distribution::kPack);

  ASSERT_TRUE(plans.ok()) << plans.error().text();
  EXPECT_THAT(created(*plans), testing::ElementsAre(2, 2, 2, 2));
}

TEST(Fleet, FillsSixteenGpus) {
  const auto plans =
      plan_fleet(fleet_of("A100-SXM4-40GBx16"), want("1g.5gb:112"), {}, Distribution::kSpread);

  ASSERT_TRUE(plans.ok()) << plans.error().text();
  EXPECT_THAT(created(*plans), testing::Each(7));
}

TEST(Fleet, SaysHowManyFit) {
  const auto plans =
      plan_fleet(fleet_of("A100-SXM4-40GBx2"), want("4g.20gb:3"), {}, Distribution::kPack);

  ASSERT_FALSE(plans.ok());
  EXPECT_EQ(plans.error().kind, ErrorKind::kNoCapacity);
  EXPECT_THAT(plans.error().message, testing::HasSubstr("at most 2 of these 3"));
}

TEST(Fleet, KeepsWhatIsThere) {
  std::vector<gpu::GpuState> states = fleet_of("A100-SXM4-40GBx2");
  gpu::GpuInstance there;
  there.id = gpu::GpuInstanceId(1);
  there.profile_id = gpu::ProfileId(9);
  there.placement = {4, 4};
  gpu::ComputeInstance compute;
  compute.placement = {0, 3};
  there.compute_instances = {compute};
  states[1].instances = {there};

  const auto plans = plan_fleet(states, want("3g.20gb 1g.5gb"), {}, Distribution::kPack);

  ASSERT_TRUE(plans.ok()) << plans.error().text();
  EXPECT_EQ((*plans)[1].plan.keep.size(), 1U);
  EXPECT_TRUE((*plans)[1].plan.destroy.empty());
}

TEST(Fleet, PutsAProfileWhereItExists) {
  std::vector<gpu::GpuState> states = fleet_of("A100-SXM4-40GB");
  states.push_back(fleet_of("A30").front());
  states.back().index = 1;

  const auto plans = plan_fleet(states, want("2g.12gb 1g.5gb"), {}, Distribution::kPack);

  ASSERT_TRUE(plans.ok()) << plans.error().text();
  EXPECT_THAT(created(*plans), testing::ElementsAre(1, 1));
}

}  // namespace
}  // namespace septet::partition
