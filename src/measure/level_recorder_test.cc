#include "measure/level_recorder.h"

#include <gtest/gtest.h>

namespace septet::measure {
namespace {

Instant at(std::int64_t ms) { return Instant(milliseconds(ms)); }

AnsweredRequest answer(std::int64_t latency_ms) {
  return {milliseconds(latency_ms), milliseconds(latency_ms), microseconds(200), microseconds(40),
          false};
}

class LevelRecorderTest : public testing::Test {
 protected:
  // A window of a second with `count` answers.
  LevelVerdict window(LevelRecorder& recorder, int count, std::int64_t latency_ms) {
    for (int i = 0; i < count; ++i) {
      recorder.answered(answer(latency_ms));
    }
    now_ms_ += 1000;
    return recorder.end_window(at(now_ms_));
  }

  std::int64_t now_ms_ = 0;
  MeasurementRules rules_;
};

TEST_F(LevelRecorderTest, AStableLevelMergesItsLastThreeWindows) {
  LevelRecorder recorder(Level{LoadMode::kConcurrency, 4}, rules_, 2);
  recorder.start(at(0));

  EXPECT_EQ(window(recorder, 10, 90), LevelVerdict::kContinue);
  EXPECT_EQ(window(recorder, 100, 10), LevelVerdict::kContinue);
  EXPECT_EQ(window(recorder, 102, 10), LevelVerdict::kContinue);
  const LevelVerdict verdict = window(recorder, 98, 10);
  const LevelResult result = recorder.result(verdict);

  EXPECT_TRUE(result.stable);
  EXPECT_EQ(result.completed, 300U);
  EXPECT_EQ(result.measured, seconds(3));
  EXPECT_DOUBLE_EQ(result.throughput, 200);  // batch size 2
  EXPECT_NEAR(result.p99_us(), 10'000, 10);
  EXPECT_DOUBLE_EQ(result.mean_send_us, 200);
  EXPECT_DOUBLE_EQ(result.mean_receive_us, 40);
  EXPECT_FALSE(result.windows[0].merged);
  EXPECT_TRUE(result.windows[1].merged);
  EXPECT_EQ(result.windows[3].start, seconds(3));
}

TEST_F(LevelRecorderTest, AnUnstableLevelIsKeptAndMarked) {
  rules_.max_windows = 3;
  LevelRecorder recorder(Level{LoadMode::kConcurrency, 1}, rules_, 1);
  recorder.start(at(0));

  window(recorder, 10, 10);
  window(recorder, 30, 10);
  const LevelResult result = recorder.result(window(recorder, 20, 10));

  EXPECT_FALSE(result.stable);
  EXPECT_EQ(result.completed, 60U);
  EXPECT_DOUBLE_EQ(result.throughput, 20);
}

TEST_F(LevelRecorderTest, AFailureIsCountedAndIsInNoLatencyAndNoThroughput) {
  LevelRecorder recorder(Level{LoadMode::kConcurrency, 1}, rules_, 1);
  recorder.start(at(0));
  recorder.failed(FailureKind::kRefused);
  window(recorder, 10, 10);
  window(recorder, 10, 10);

  const LevelResult result = recorder.result(window(recorder, 10, 10));

  EXPECT_TRUE(result.stable);
  EXPECT_EQ(result.completed, 30U);
  EXPECT_EQ(result.latency.count(), 30U);
  EXPECT_DOUBLE_EQ(result.throughput, 10);
  EXPECT_EQ(result.failures.of(FailureKind::kRefused), 1U);
}

TEST_F(LevelRecorderTest, NothingBeforeTheStartIsCounted) {
  LevelRecorder recorder(Level{LoadMode::kConcurrency, 1}, rules_, 1);
  recorder.answered(answer(500));
  recorder.failed(FailureKind::kReset);
  recorder.start(at(0));
  window(recorder, 1, 10);

  const LevelResult result = recorder.result(LevelVerdict::kUnstable);

  EXPECT_EQ(result.completed, 1U);
  EXPECT_EQ(result.failures.total(), 0U);
}

TEST_F(LevelRecorderTest, ServerStatisticsAreTheDifferenceOverTheMergedWindows) {
  LevelRecorder recorder(Level{LoadMode::kConcurrency, 1}, rules_, 1);
  recorder.start(at(0));
  ServerSnapshot snapshot;
  snapshot.parts.resize(2);
  for (std::size_t i = 0; i < 4; ++i) {
    window(recorder, 10, 10);
    snapshot.model.inference_count += i == 0 ? 1000 : 10;
    snapshot.parts[1].inference_count += i == 0 ? 500 : 20;
    recorder.server_snapshot(recorder.windows_closed(), snapshot);
  }

  const LevelResult result = recorder.result(LevelVerdict::kStable);

  EXPECT_TRUE(result.has_server_statistics);
  EXPECT_EQ(result.server.inference_count, 30U);
  ASSERT_EQ(result.parts.size(), 2U);
  EXPECT_EQ(result.parts[0].inference_count, 0U);
  EXPECT_EQ(result.parts[1].inference_count, 60U);
}

TEST_F(LevelRecorderTest, WithoutBothSnapshotsThereAreNoServerStatistics) {
  LevelRecorder recorder(Level{LoadMode::kConcurrency, 1}, rules_, 1);
  recorder.start(at(0));
  for (int i = 0; i < 3; ++i) {
    window(recorder, 10, 10);
  }
  recorder.server_snapshot(3, {});

  EXPECT_FALSE(recorder.result(LevelVerdict::kStable).has_server_statistics);
}

TEST_F(LevelRecorderTest, LateSendingIsCountedAsDelayed) {
  LevelRecorder recorder(Level{LoadMode::kRequestRate, 10}, rules_, 1);
  recorder.start(at(0));
  recorder.sent_late(microseconds(80));
  recorder.sent_late(milliseconds(30));
  window(recorder, 2, 10);

  const LevelResult result = recorder.result(LevelVerdict::kUnstable);

  EXPECT_EQ(result.delayed, 1U);
  EXPECT_GT(result.send_lag_p99_us, 29'000);
}

TEST_F(LevelRecorderTest, ThePercentileIsJudgedWhenAskedFor) {
  rules_.percentile = 90;
  LevelRecorder recorder(Level{LoadMode::kConcurrency, 1}, rules_, 1);
  recorder.start(at(0));
  for (int i = 0; i < 8; ++i) {
    recorder.answered(answer(1));
  }

  window(recorder, 2, 100);

  EXPECT_NEAR(recorder.windows()[0].judged_latency_us, 100'000, 100);
}

TEST_F(LevelRecorderTest, LittlesLawGivesTheRequestsInFlight) {
  LevelRecorder recorder(Level{LoadMode::kConcurrency, 4}, rules_, 1);
  recorder.start(at(0));
  window(recorder, 400, 10);

  EXPECT_NEAR(recorder.result(LevelVerdict::kUnstable).in_flight_mean, 4, 0.01);
}

TEST_F(LevelRecorderTest, ALevelWithoutAnyWindowIsEmpty) {
  const LevelRecorder recorder(Level{LoadMode::kConcurrency, 1}, rules_, 1);

  const LevelResult result = recorder.result(LevelVerdict::kUnstable);

  EXPECT_EQ(result.completed, 0U);
  EXPECT_EQ(result.throughput, 0);
}

TEST_F(LevelRecorderTest, ReadingsOfGpusBelongToTheWindowThatTheyCameIn) {
  const auto busy = [](double share) { return GpuReading{{{"g", share}}, {}, {}, {}}; };
  LevelRecorder recorder(Level{LoadMode::kConcurrency, 4}, rules_, 1);
  recorder.read_gpus(busy(1));  // warm-up
  recorder.start(at(0));
  recorder.read_gpus(busy(1));
  EXPECT_EQ(window(recorder, 10, 90), LevelVerdict::kContinue);
  for (int i = 0; i < 3; ++i) {
    recorder.read_gpus(busy(0.2));
    recorder.read_gpus(busy(0.4));
    window(recorder, 100, 10);
  }

  const LevelResult result = recorder.result(LevelVerdict::kStable);

  ASSERT_TRUE(result.gpus.has_value());
  EXPECT_NEAR(result.gpus->utilization().at("g"), 0.3, 1e-9);
}

}  // namespace
}  // namespace septet::measure
