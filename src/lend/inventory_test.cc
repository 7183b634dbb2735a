#include "lend/inventory.h"

#include <gtest/gtest.h>

#include "gpu/simulated_driver.h"

namespace septet::lend {
namespace {

class InventoryTest : public ::testing::Test {
 protected:
  InventoryTest() : node_(*gpu::make_simulated_node("A100-SXM4-40GB")), driver_(node_) {}

  gpu::ProfileId profile(const char* name) {
    const gpu::GpuState state = *driver_.observe(0);
    for (const auto& each : state.profiles) {
      if (each.name == name) {
        return each.id;
      }
    }
    ADD_FAILURE() << name;
    return {};
  }

  // Creates a GPU instance with its one compute instance.
  gpu::GpuInstanceId create(const char* name, gpu::Placement placement) {
    const auto instance = driver_.create_gpu_instance(0, profile(name), placement);
    CHECK(instance.ok());
    const auto offered = driver_.compute_profiles(0, instance->id);
    CHECK(driver_.create_compute_instance(0, instance->id, offered->back().id).ok());
    return instance->id;
  }

  gpu::SimulatedNode node_;
  gpu::SimulatedDriver driver_;
};

TEST_F(InventoryTest, WithoutMigTheWholeGpuIsLent) {
  const auto partitions = partitions_of(*driver_.observe(0), {});

  ASSERT_EQ(partitions.size(), 1U);
  EXPECT_TRUE(partitions[0].is_whole_gpu());
  EXPECT_EQ(partitions[0].index, "0");
  EXPECT_EQ(partitions[0].memory_mib, 40960);
  EXPECT_TRUE(offered_by(*driver_.observe(0)).empty());
}

TEST_F(InventoryTest, WithMigEveryDeviceIsLent) {
  ASSERT_TRUE(driver_.set_mig_mode(0, gpu::MigMode::kEnabled).ok());
  create("3g.20gb", {4, 4});
  create("1g.5gb", {0, 1});

  const auto partitions = partitions_of(*driver_.observe(0), {.mps_clients = 48});

  ASSERT_EQ(partitions.size(), 2U);
  EXPECT_EQ(partitions[0].profile, "1g.5gb");
  EXPECT_EQ(partitions[0].share_permille, 142U);
  EXPECT_EQ(partitions[0].mps_clients, 48U);
  EXPECT_EQ(partitions[1].profile, "3g.20gb");
  EXPECT_TRUE(partitions[1].id.value().starts_with("MIG-"));
  EXPECT_GT(offered_by(*driver_.observe(0)).size(), 5U);
}

TEST_F(InventoryTest, WhatAForeignProcessHoldsIsNotLent) {
  ASSERT_TRUE(driver_.set_mig_mode(0, gpu::MigMode::kEnabled).ok());
  const gpu::GpuInstanceId held = create("1g.5gb", {0, 1});
  create("1g.5gb", {1, 1});
  gpu::SimulatedClient client;
  client.pid = 4242;
  client.name = "python";
  client.gpu_instance = held.value();
  ASSERT_EQ(gpu::attach_client(node_.gpus[0], client), gpu::NvmlCode::kSuccess);

  const auto foreign = partitions_of(*driver_.observe(0), {});
  const auto known = partitions_of(*driver_.observe(0), {.known_processes = {4242}});

  EXPECT_FALSE(foreign[0].is_lendable);
  EXPECT_EQ(foreign[0].why_not_lendable, "held by process 4242 (python)");
  EXPECT_TRUE(foreign[1].is_lendable);
  EXPECT_TRUE(known[0].is_lendable);
  EXPECT_EQ(processes_on(*driver_.observe(0), foreign[0]), std::vector<int>{4242});
  EXPECT_TRUE(processes_on(*driver_.observe(0), foreign[1]).empty());
}

}  // namespace
}  // namespace septet::lend
