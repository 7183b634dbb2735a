#include "measure/level_sweep.h"

#include <gmock/gmock.h>

#include <functional>
#include <vector>

namespace septet::measure {
namespace {

// The levels of the sweep when `over_limit` says which are above the latency limit.
std::vector<double> walk(LevelSweep sweep, const std::function<bool(double)>& over_limit) {
  std::vector<double> levels;
  for (std::optional<Level> level = sweep.next(); level && levels.size() < 100;
       level = sweep.next()) {
    levels.push_back(level->value);
    LevelResult result;
    result.level = *level;
    result.over_limit = over_limit(level->value);
    sweep.finished(result);
  }
  return levels;
}

bool never(double /*level*/) { return false; }

TEST(LinearSweep, IncludesBothEnds) {
  EXPECT_THAT(walk(LevelSweep::linear(LoadMode::kConcurrency, 1, 4, 1), never),
              testing::ElementsAre(1, 2, 3, 4));
}

TEST(LinearSweep, FractionalStepsReachTheEnd) {
  EXPECT_EQ(walk(LevelSweep::linear(LoadMode::kRequestRate, 0.1, 1.0, 0.1), never).size(), 10U);
}

TEST(LinearSweep, EndsAtTheLevelThatIsOverTheLimit) {
  EXPECT_THAT(walk(LevelSweep::linear(LoadMode::kConcurrency, 1, 9, 2),
                   [](double level) { return level > 4; }),
              testing::ElementsAre(1, 3, 5));
}

TEST(LinearSweep, WithoutAnEndGrowsUntilOverTheLimit) {
  EXPECT_EQ(walk(LevelSweep::linear(LoadMode::kConcurrency, 1, 0, 1),
                 [](double level) { return level >= 40; })
                .size(),
            40U);
}

TEST(LinearSweep, GoesOnAfterAnUnstableLevelAndEndsAtAnInterruptedOne) {
  LevelSweep sweep = LevelSweep::linear(LoadMode::kConcurrency, 1, 4, 1);
  LevelResult result;
  result.stable = false;
  sweep.finished(result);
  ASSERT_TRUE(sweep.next().has_value());

  result.interrupted = true;
  sweep.finished(result);

  EXPECT_FALSE(sweep.next().has_value());
}

TEST(BinarySweep, FindsTheHighestLevelWithinTheLimit) {
  EXPECT_THAT(walk(LevelSweep::binary(LoadMode::kConcurrency, 1, 100, 1),
                   [](double level) { return level > 37; }),
              testing::ElementsAre(1, 100, 50, 25, 37, 43, 40, 38));
}

TEST(BinarySweep, EndsWhenTheFirstLevelIsOverTheLimit) {
  EXPECT_THAT(
      walk(LevelSweep::binary(LoadMode::kConcurrency, 8, 100, 1), [](double) { return true; }),
      testing::ElementsAre(8));
}

TEST(BinarySweep, EndsWhenTheLastLevelIsWithinTheLimit) {
  EXPECT_THAT(walk(LevelSweep::binary(LoadMode::kConcurrency, 8, 100, 1), never),
              testing::ElementsAre(8, 100));
}

TEST(BinarySweep, StopsAtTheStep) {
  EXPECT_THAT(walk(LevelSweep::binary(LoadMode::kRequestRate, 10, 20, 2.5),
                   [](double level) { return level > 13; }),
              testing::ElementsAre(10, 20, 15, 12.5));
}

}  // namespace
}  // namespace septet::measure
