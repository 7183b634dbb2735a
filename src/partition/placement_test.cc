#include "partition/placement.h"

#include <gtest/gtest.h>

#include "partition/planner_testing.h"

namespace septet::partition {
namespace {

constexpr std::size_t kOneSlice = 0;
constexpr std::size_t kThreeSlices = 4;  // in the table of the A100

TEST(Placement, KeepsTheLargePlacesFree) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  const std::vector<PlacementCandidate> gpus = {{space, 0, {kOneSlice}}};

  EXPECT_EQ(place_online(gpus)->start, 6U);
}

TEST(Placement, PrefersTheFullerGpu) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  const std::vector<PlacementCandidate> gpus = {{space, 0, {kOneSlice}},
                                                {space, 0b00111111, {kOneSlice}}};

  const auto choice = place_online(gpus);

  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->candidate, 1U);
  EXPECT_EQ(choice->start, 6U);
}

TEST(Placement, PutsThreeSlicesBesideTheFour) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  const std::vector<PlacementCandidate> gpus = {{space, 0, {kThreeSlices}}};

  EXPECT_EQ(place_online(gpus)->start, 4U);
}

TEST(Placement, SaysWhenItFitsNowhere) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  const std::vector<PlacementCandidate> gpus = {{space, 0b00010001, {kThreeSlices}}};

  EXPECT_FALSE(place_online(gpus));
}

}  // namespace
}  // namespace septet::partition
