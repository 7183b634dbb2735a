#include "measure/stability.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/prng.h"

namespace septet::measure {
namespace {

WindowResult window(double throughput, double latency_us) {
  WindowResult result;
  result.throughput = throughput;
  result.judged_latency_us = latency_us;
  return result;
}

TEST(Stability, TwoWindowsAreNeverEnough) {
  const std::vector<WindowResult> windows = {window(100, 10), window(100, 10)};

  EXPECT_EQ(judge(windows, {}), LevelVerdict::kContinue);
}

TEST(Stability, ThreeWindowsWithinThePercentageAreStable) {
  const std::vector<WindowResult> windows = {window(100, 1000), window(110, 1050),
                                             window(105, 1100)};

  EXPECT_EQ(judge(windows, {}), LevelVerdict::kStable);
}

TEST(Stability, ThroughputBeyondThePercentageIsNotStable) {
  const std::vector<WindowResult> windows = {window(100, 10), window(111, 10), window(105, 10)};

  EXPECT_EQ(judge(windows, {}), LevelVerdict::kContinue);
}

TEST(Stability, LatencyBeyondThePercentageIsNotStable) {
  const std::vector<WindowResult> windows = {window(100, 10), window(100, 11.1), window(100, 10)};

  EXPECT_EQ(judge(windows, {}), LevelVerdict::kContinue);
}

TEST(Stability, OnlyTheLastThreeWindowsAreCompared) {
  const std::vector<WindowResult> windows = {window(10, 900), window(100, 10), window(101, 10),
                                             window(102, 10)};

  EXPECT_EQ(judge(windows, {}), LevelVerdict::kStable);
  EXPECT_EQ(windows_to_merge(windows, {}), 3U);
}

TEST(Stability, WindowsWithoutAnAnswerAreNotStable) {
  const std::vector<WindowResult> windows = {window(0, 0), window(0, 0), window(0, 0)};

  EXPECT_EQ(judge(windows, {}), LevelVerdict::kContinue);
}

TEST(Stability, OutOfWindowsIsUnstable) {
  MeasurementRules rules;
  rules.max_windows = 3;
  const std::vector<WindowResult> windows = {window(1, 10), window(100, 10), window(1, 10)};

  EXPECT_EQ(judge(windows, rules), LevelVerdict::kUnstable);
}

TEST(Stability, OneWindowAllowedEndsAfterOneAndIsMerged) {
  MeasurementRules rules;
  rules.max_windows = 1;
  const std::vector<WindowResult> windows = {window(100, 10)};

  EXPECT_EQ(judge(windows, rules), LevelVerdict::kUnstable);
  EXPECT_EQ(windows_to_merge(windows, rules), 1U);
}

TEST(Stability, AWindowAboveTheLatencyLimitEndsTheLevelOnceThereAreThree) {
  MeasurementRules rules;
  rules.latency_limit = milliseconds(1);
  std::vector<WindowResult> windows = {window(100, 2000), window(100, 900)};
  EXPECT_EQ(judge(windows, rules), LevelVerdict::kContinue);

  windows.push_back(window(100, 900));

  EXPECT_EQ(judge(windows, rules), LevelVerdict::kOverLimit);
}

TEST(Confidence, OfEqualBatchesIsZeroWide) {
  const std::vector<double> batches = {5, 5, 5};

  EXPECT_DOUBLE_EQ(confidence_interval(batches)->half_width, 0);
  EXPECT_FALSE(confidence_interval(std::vector<double>{5}).has_value());
}

TEST(Confidence, CoversTheTrueMeanNinetyFiveTimesInAHundred) {
  Prng prng(99);
  int covered = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> batches;
    for (int i = 0; i < 8; ++i) {
      double sum = 0;  // a sum of twelve uniforms is near enough to a normal
      for (int j = 0; j < 12; ++j) {
        sum += prng.uniform();
      }
      batches.push_back(sum);
    }
    const ConfidenceInterval interval = *confidence_interval(batches);
    covered += std::abs(interval.mean - 6) <= interval.half_width ? 1 : 0;
  }

  EXPECT_NEAR(static_cast<double>(covered) / kTrials, 0.95, 0.012);
}

TEST(Confidence, ALevelStopsWhenBothIntervalsAreTightAndDropsItsFirstWindow) {
  MeasurementRules rules;
  rules.confidence_percent = 5;
  rules.max_windows = 50;
  std::vector<WindowResult> windows = {window(20, 400)};
  for (int i = 0; i < 5; ++i) {
    windows.push_back(window(100 + i % 2, 50 + i % 3));
  }
  EXPECT_EQ(judge(windows, rules), LevelVerdict::kContinue);

  windows.push_back(window(100, 51));

  EXPECT_EQ(judge(windows, rules), LevelVerdict::kStable);
  EXPECT_EQ(windows_to_merge(windows, rules), 6U);
}

TEST(FixedWindows, AllCountAndNoneIsJudged) {
  MeasurementRules rules;
  rules.fixed_windows = 2;
  std::vector<WindowResult> windows = {window(1, 900)};
  EXPECT_EQ(judge(windows, rules), LevelVerdict::kContinue);

  windows.push_back(window(500, 3));

  EXPECT_EQ(judge(windows, rules), LevelVerdict::kStable);
  EXPECT_EQ(windows_to_merge(windows, rules), 2U);
}

TEST(RequestsNeeded, AdaptiveWindowsWaitForAFullTurnOfTheRequestsInFlight) {
  const MeasurementRules adaptive = MeasurementRules::adaptive();

  EXPECT_EQ(requests_needed(adaptive, {LoadMode::kConcurrency, 4}), 30U);
  EXPECT_EQ(requests_needed(adaptive, {LoadMode::kConcurrency, 100}), 100U);
  EXPECT_EQ(requests_needed(adaptive, {LoadMode::kRequestRate, 1000}), 30U);
  EXPECT_EQ(requests_needed({}, {LoadMode::kConcurrency, 100}), 0U);
}

TEST(Confidence, ALevelGoesOnWhileTheLatencyScatters) {
  MeasurementRules rules;
  rules.confidence_percent = 5;
  rules.max_windows = 50;
  std::vector<WindowResult> windows;
  for (int i = 0; i < 10; ++i) {
    windows.push_back(window(100, i % 2 == 0 ? 50 : 80));
  }

  EXPECT_EQ(judge(windows, rules), LevelVerdict::kContinue);
}

}  // namespace
}  // namespace septet::measure
