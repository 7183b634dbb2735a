#include "measure/measurement_rules.h"

#include <gmock/gmock.h>

namespace septet::measure {
namespace {

std::vector<double> values(const std::vector<Level>& levels) {
  std::vector<double> result;
  for (const Level& level : levels) {
    result.push_back(level.value);
  }
  return result;
}

TEST(LevelRange, IncludesBothEnds) {
  EXPECT_THAT(values(level_range(LoadMode::kConcurrency, 1, 4, 1)),
              testing::ElementsAre(1, 2, 3, 4));
}

TEST(LevelRange, StopsBeforeTheEndWhenTheStepDoesNotMeetIt) {
  EXPECT_THAT(values(level_range(LoadMode::kConcurrency, 1, 6, 2)), testing::ElementsAre(1, 3, 5));
}

TEST(LevelRange, FractionalStepsReachTheEnd) {
  EXPECT_EQ(level_range(LoadMode::kRequestRate, 0.1, 1.0, 0.1).size(), 10U);
}

TEST(LevelRange, AnEndBelowTheBeginIsOneLevel) {
  EXPECT_THAT(values(level_range(LoadMode::kConcurrency, 8, 1, 1)), testing::ElementsAre(8));
}

}  // namespace
}  // namespace septet::measure
