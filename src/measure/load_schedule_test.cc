#include "measure/load_schedule.h"

#include <gtest/gtest.h>

namespace septet::measure {
namespace {

TEST(LoadSchedule, ConstantHasEqualGapsFromZero) {
  LoadSchedule schedule = LoadSchedule::constant(40);

  EXPECT_EQ(schedule.next(), Duration::zero());
  EXPECT_EQ(schedule.next(), milliseconds(25));
  EXPECT_EQ(schedule.next(), milliseconds(50));
}

TEST(LoadSchedule, ConstantDoesNotDrift) {
  LoadSchedule schedule = LoadSchedule::constant(3);

  Duration last{};
  for (int i = 0; i <= 3'000'000; ++i) {
    last = schedule.next();
  }

  EXPECT_EQ(last, seconds(1'000'000));
}

TEST(LoadSchedule, PoissonHasTheRateAndTheScatterOfChance) {
  constexpr int kCount = 200'000;
  LoadSchedule schedule = LoadSchedule::poisson(1000, 11);
  double sum = 0;
  double squares = 0;
  Duration before{};
  for (int i = 0; i < kCount; ++i) {
    const Duration at = schedule.next();
    const double gap = to_seconds(at - before);
    before = at;
    sum += gap;
    squares += gap * gap;
  }

  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 0.001, 0.00001);
  EXPECT_NEAR(squares / kCount / (mean * mean), 2, 0.03);  // CV^2 = 1
}

TEST(LoadSchedule, TheSameSeedGivesTheSameScheduleAndAnotherSeedDoesNot) {
  LoadSchedule a = LoadSchedule::poisson(10, 5);
  LoadSchedule b = LoadSchedule::poisson(10, 5);
  LoadSchedule c = LoadSchedule::poisson(10, 6);

  const Duration first = a.next();
  EXPECT_EQ(first, b.next());
  EXPECT_NE(first, c.next());
}

TEST(LoadSchedule, IntervalsAreUsedInTurnAndRepeated) {
  LoadSchedule schedule = LoadSchedule::intervals({milliseconds(20), milliseconds(5)});

  EXPECT_EQ(schedule.next(), milliseconds(20));
  EXPECT_EQ(schedule.next(), milliseconds(25));
  EXPECT_EQ(schedule.next(), milliseconds(45));
}

TEST(ShownRate, IsAWholeNumberAsPerfAnalyzerPrintsIt) {
  EXPECT_EQ(shown_rate({microseconds(20'000), microseconds(5'000), microseconds(30'000)}), 54);
}

TEST(ShownRate, IsExactBelowOne) { EXPECT_EQ(shown_rate({seconds(4)}), 0.25); }

}  // namespace
}  // namespace septet::measure
