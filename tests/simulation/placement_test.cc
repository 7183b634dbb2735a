// The published comparison of placement rules (docs/measurements/placement.md), reproduced: the
// numbers below are the percentages of requests and of slices accepted that an independent
// simulation of the same system gave; ours may differ by the noise of one seed.
#include <gtest/gtest.h>

#include "placement_policies.h"

namespace septet::test {
namespace {

constexpr double kNoisePercent = 1.2;

struct Row {
  SizeMix mix;
  double load;
  // In the order of kPlacementPolicies without driver-like: requests, slices.
  std::array<Accepted, 6> expected;
};

const std::array<Row, 5> kRows = {{
    {{.4, .25, .2, .1, .05},
     .6,
     {{{94.9, 87.9}, {96.8, 93.3}, {97.2, 94.3}, {97.3, 94.5}, {97.4, 94.1}, {97.5, 95.0}}}},
    {{.4, .25, .2, .1, .05},
     .8,
     {{{89.1, 77.2}, {91.6, 83.2}, {92.0, 84.3}, {91.9, 84.4}, {92.7, 85.0}, {92.6, 85.6}}}},
    {{.4, .25, .2, .1, .05},
     1.0,
     {{{83.3, 68.0}, {85.6, 73.2}, {85.8, 73.7}, {85.8, 74.0}, {86.6, 75.0}, {86.4, 75.0}}}},
    {{.7, .1, .1, .05, .05},
     .8,
     {{{91.2, 73.8}, {94.4, 84.4}, {94.5, 84.5}, {94.5, 84.9}, {94.8, 84.5}, {94.9, 85.9}}}},
    {{.2, .2, .2, .2, .2},
     .8,
     {{{85.7, 75.2}, {87.4, 79.6}, {88.5, 81.3}, {88.8, 81.7}, {89.1, 81.4}, {89.1, 82.3}}}},
}};

constexpr std::array kPublished = {
    PlacementPolicy::kRandom,          PlacementPolicy::kFirstFit,
    PlacementPolicy::kBestFitParvaGpu, PlacementPolicy::kBestFitHighStarts,
    PlacementPolicy::kLeastCountLoss,  PlacementPolicy::kWeightedLoss};

class PlacementRules : public testing::TestWithParam<std::size_t> {};

TEST_P(PlacementRules, AcceptWhatWasPublished) {
  const Row& row = kRows[GetParam()];
  for (std::size_t i = 0; i < kPublished.size(); ++i) {
    const Accepted accepted = run_loss_system({.mix = row.mix, .load = row.load}, kPublished[i]);

    EXPECT_NEAR(accepted.requests_percent, row.expected[i].requests_percent, kNoisePercent)
        << to_string(kPublished[i]);
    EXPECT_NEAR(accepted.slices_percent, row.expected[i].slices_percent, kNoisePercent)
        << to_string(kPublished[i]);
  }
}

TEST_P(PlacementRules, WeightedLossAcceptsTheMostSlices) {
  const Row& row = kRows[GetParam()];
  const LossSystem system{.mix = row.mix, .load = row.load};
  const double ours = run_loss_system(system, PlacementPolicy::kWeightedLoss).slices_percent;

  for (const PlacementPolicy other :
       {PlacementPolicy::kRandom, PlacementPolicy::kFirstFit, PlacementPolicy::kBestFitParvaGpu,
        PlacementPolicy::kBestFitHighStarts, PlacementPolicy::kDriverLike}) {
    EXPECT_GT(ours, run_loss_system(system, other).slices_percent - 0.2) << to_string(other);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, PlacementRules, testing::Range<std::size_t>(0, kRows.size()));

}  // namespace
}  // namespace septet::test
