#include "agent/lease_layout.h"

#include <gtest/gtest.h>

#include "gpu/simulated_driver.h"
#include "lend/slice_want.h"

namespace septet::agent {
namespace {

class LeaseLayoutTest : public ::testing::Test {
 protected:
  LeaseLayoutTest() : node_(*gpu::make_simulated_node("A100-SXM4-40GB")), driver_(node_) {
    EXPECT_TRUE(driver_.set_mig_mode(0, gpu::MigMode::kEnabled).ok());
  }

  // The partition's id.
  lend::PartitionId create(const char* name, gpu::Placement placement) {
    const gpu::GpuState before = state();
    for (const auto& profile : before.profiles) {
      if (profile.name == name) {
        const auto instance = driver_.create_gpu_instance(0, profile.id, placement);
        CHECK(instance.ok());
        const auto offered = driver_.compute_profiles(0, instance->id);
        const auto compute = driver_.create_compute_instance(0, instance->id, offered->back().id);
        CHECK(compute.ok());
        return lend::PartitionId(compute->uuid.value());
      }
    }
    CHECK(false);
  }

  gpu::GpuState state() { return *driver_.observe(0); }
  static lend::SliceWant want(const char* text) { return *lend::parse_slice_want(text); }

  gpu::SimulatedNode node_;
  gpu::SimulatedDriver driver_;
};

TEST_F(LeaseLayoutTest, FreeSpaceIsUsedFirst) {
  create("1g.5gb", {0, 1});

  const auto room = find_room(state(), want("3g.20gb"), 1, {});

  ASSERT_TRUE(room);
  EXPECT_TRUE(room->only_idle);
  EXPECT_TRUE(room->dropped.empty());
  EXPECT_EQ(to_string(room->after), "1g.5gb@0 3g.20gb@4");
}

TEST_F(LeaseLayoutTest, IdlePartitionsGoAndLentOnesStay) {
  std::vector<lend::PartitionId> ids;
  for (unsigned i = 0; i < 7; ++i) {
    ids.push_back(create("1g.5gb", {i, 1}));
  }
  const std::vector<lend::PartitionId> idle(ids.begin() + 4, ids.end());

  const auto room = find_room(state(), want("3g.20gb"), 1, idle);

  ASSERT_TRUE(room);
  EXPECT_TRUE(room->only_idle);
  EXPECT_EQ(room->dropped, idle);
}

TEST_F(LeaseLayoutTest, TellsWhatWouldHaveToEndWhenTheIdleDoNotSuffice) {
  std::vector<lend::PartitionId> ids;
  for (unsigned i = 0; i < 7; ++i) {
    ids.push_back(create("1g.5gb", {i, 1}));
  }
  // One lent partition in each half.
  const std::vector<lend::PartitionId> idle = {ids[0], ids[1], ids[2], ids[4], ids[5]};

  const auto room = find_room(state(), want("3g.20gb"), 1, idle);

  ASSERT_TRUE(room);
  EXPECT_FALSE(room->only_idle);
  EXPECT_EQ(room->dropped, (std::vector<lend::PartitionId>{ids[4], ids[5], ids[6]}));
}

TEST_F(LeaseLayoutTest, WhatServesAlreadyIsNotDestroyed) {
  const auto large = create("3g.20gb", {0, 4});
  std::vector<lend::PartitionId> idle = {large};
  for (unsigned i = 4; i < 7; ++i) {
    idle.push_back(create("1g.5gb", {i, 1}));
  }

  const auto room = find_room(state(), want("3g"), 1, idle);

  ASSERT_TRUE(room);
  EXPECT_EQ(std::count(room->dropped.begin(), room->dropped.end(), large), 0);
  EXPECT_EQ(to_string(room->after), "3g.20gb@0 3g.20gb@4");
}

TEST_F(LeaseLayoutTest, MoreThanTheGpuHasIsNoRoom) {
  EXPECT_FALSE(find_room(state(), want("3g.20gb"), 3, {}));
  EXPECT_FALSE(find_room(state(), want("9g.90gb"), 1, {}));
}

}  // namespace
}  // namespace septet::agent
