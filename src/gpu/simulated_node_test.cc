#include "gpu/simulated_node.h"

#include <gmock/gmock.h>

#include "gpu/simulated_driver.h"

namespace septet::gpu {
namespace {

using ::testing::HasSubstr;

SimulatedNode node_of(std::string_view specification) {
  auto node = make_simulated_node(specification);
  CHECK(node.ok());
  return std::move(node).value();
}

TEST(SimulatedNode, ReadsModelAndCount) {
  EXPECT_EQ(node_of("A100-SXM4-40GB").gpus.size(), 1U);
  EXPECT_EQ(node_of("H200x8").gpus.size(), 8U);
  EXPECT_EQ(node_of("rtx-pro-6000x2").config.name, "RTX-PRO-6000x2");
  EXPECT_EQ(make_simulated_node("A100x2").error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(make_simulated_node("H200x0").error().kind, ErrorKind::kUsage);
  EXPECT_EQ(make_simulated_node("H200x33").error().kind, ErrorKind::kUsage);
}

TEST(SimulatedNode, NamesCallsByFunctionPrefixAndWord) {
  EXPECT_TRUE(names_call("DeviceSetMigMode", "DeviceSetMigMode"));
  EXPECT_TRUE(names_call("DeviceGet*", "DeviceGetMigMode"));
  EXPECT_TRUE(names_call("create_gpu_instance", "DeviceCreateGpuInstanceWithPlacement"));
  EXPECT_TRUE(names_call("write", "ComputeInstanceDestroy"));
  EXPECT_FALSE(names_call("write", "DeviceGetMigMode"));
  EXPECT_FALSE(names_call("create_gpu_instance", "GpuInstanceDestroy"));
}

TEST(SimulatedNode, FailsTheNthCallOnly) {
  SimulatedNode node = node_of("A100-SXM4-40GB");
  FaultRule rule;
  rule.call = "create_gpu_instance";
  rule.first = 2;
  rule.code = NvmlCode::kInsufficientResources;
  node.faults = {rule};
  SimulatedDriver driver(node);
  ASSERT_TRUE(driver.set_mig_mode(0, MigMode::kEnabled).ok());

  EXPECT_TRUE(driver.create_gpu_instance(0, ProfileId(19), {0, 1}).ok());
  const auto second = driver.create_gpu_instance(0, ProfileId(19), {1, 1});
  EXPECT_TRUE(driver.create_gpu_instance(0, ProfileId(19), {1, 1}).ok());

  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kNoCapacity);
  EXPECT_FALSE(has_live_faults(node));
}

TEST(SimulatedNode, SucceedsWithoutEffectWhenTold) {
  SimulatedNode node = node_of("A100-SXM4-40GB");
  FaultRule rule;
  rule.call = "create_gpu_instance";
  rule.code = NvmlCode::kSuccess;
  node.faults = {rule};
  SimulatedDriver driver(node);
  ASSERT_TRUE(driver.set_mig_mode(0, MigMode::kEnabled).ok());

  EXPECT_TRUE(driver.create_gpu_instance(0, ProfileId(19), {0, 1}).ok());
  EXPECT_TRUE(driver.observe(0)->instances.empty());
}

TEST(SimulatedNode, ModeChangeCanStayPendingByPlan) {
  SimulatedNode node = node_of("A100-SXM4-40GB");
  FaultRule rule;
  rule.call = "set_mig_mode";
  rule.activation = NvmlCode::kResetRequired;
  node.faults = {rule};
  SimulatedDriver driver(node);

  const auto changed = driver.set_mig_mode(0, MigMode::kEnabled);

  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().kind, ErrorKind::kResetNeeded);
  EXPECT_EQ(driver.observe(0)->mig_current, MigMode::kDisabled);
  EXPECT_EQ(driver.observe(0)->mig_pending, MigMode::kEnabled);
}

TEST(SimulatedNode, ALostGpuAnswersNothingMore) {
  SimulatedNode node = node_of("A100-SXM4-40GBx2");
  FaultRule rule;
  rule.call = "write";
  rule.gpu = 1;
  rule.loses_gpu = true;
  rule.xid = 79;
  node.faults = {rule};
  SimulatedDriver driver(node);

  EXPECT_TRUE(driver.set_mig_mode(0, MigMode::kEnabled).ok());
  EXPECT_THAT(driver.set_mig_mode(1, MigMode::kEnabled).error().message, HasSubstr("GPU is lost"));
  EXPECT_FALSE(driver.observe(1).ok());
  EXPECT_TRUE(driver.observe(0).ok());
  ASSERT_EQ(node.events.size(), 1U);
  EXPECT_EQ(node.events[0].xid, 79U);
}

TEST(SimulatedNode, AForeignHandActsBetweenReadAndWrite) {
  SimulatedNode node = node_of("A100-SXM4-40GB");
  FaultRule rule;
  rule.call = "create_gpu_instance";
  rule.foreign.create_profile = 0;  // 7g takes everything
  node.faults = {rule};
  SimulatedDriver driver(node);
  ASSERT_TRUE(driver.set_mig_mode(0, MigMode::kEnabled).ok());

  const auto created = driver.create_gpu_instance(0, ProfileId(19), {0, 1});

  EXPECT_EQ(created.error().kind, ErrorKind::kNoCapacity);
  EXPECT_EQ(driver.observe(0)->instances.size(), 1U);
}

TEST(SimulatedNode, DelaysAreVirtualTime) {
  SimulatedNode node = node_of("A100-SXM4-40GB");
  FaultRule rule;
  rule.call = "any";
  rule.count = 0;
  rule.delay = seconds(10);
  node.faults = {rule};
  SimulatedDriver driver(node);

  ASSERT_TRUE(driver.observe(0).ok());
  ASSERT_TRUE(driver.observe(0).ok());

  EXPECT_EQ(driver.now() - Instant{}, seconds(20));
}

TEST(SimulatedNode, AKilledCallerSeesNothingOfWhatItDid) {
  SimulatedNode node = node_of("A100-SXM4-40GB");
  FaultRule rule;
  rule.call = "create_gpu_instance";
  rule.kill = KillMoment::kAfter;
  node.faults = {rule};
  SimulatedDriver driver(node);
  ASSERT_TRUE(driver.set_mig_mode(0, MigMode::kEnabled).ok());

  static_cast<void>(driver.create_gpu_instance(0, ProfileId(19), {0, 1}));

  EXPECT_TRUE(driver.was_killed());
  EXPECT_FALSE(driver.observe(0).ok());
  driver.revive();
  EXPECT_EQ(driver.observe(0)->instances.size(), 1U);
}

TEST(SimulatedDriver, ObservesWhatTheDriverWouldSay) {
  SimulatedNode node = node_of("A100-SXM4-40GB");
  SimulatedDriver driver(node);
  ASSERT_TRUE(driver.set_mig_mode(0, MigMode::kEnabled).ok());
  const auto late = driver.create_gpu_instance(0, ProfileId(9), {4, 4});
  const auto early = driver.create_gpu_instance(0, ProfileId(14), {0, 2});
  ASSERT_TRUE(late.ok() && early.ok());
  ASSERT_TRUE(driver.create_compute_instance(0, late->id, ProfileId(2)).ok());

  const auto state = driver.observe(0);

  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(state->pci_bus_id, "00000000:07:00.0");
  ASSERT_EQ(state->instances.size(), 2U);
  EXPECT_EQ(state->instances[0].placement, (Placement{0, 2}));
  EXPECT_EQ(state->instances[1].compute_instances.size(), 1U);
  EXPECT_EQ(driver.remaining_capacity(0, ProfileId(14)).value(), 1U);
}

}  // namespace
}  // namespace septet::gpu
