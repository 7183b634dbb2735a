#include "measure/perf_console.h"

#include <gmock/gmock.h>

namespace septet::measure {
namespace {

PerfPlan plan() {
  PerfPlan plan;
  plan.end = 4;
  plan.rules.window = milliseconds(1000);
  return plan;
}

LevelResult sample() {
  LevelResult result;
  result.level = {LoadMode::kConcurrency, 1};
  result.completed = 842;
  result.measured = seconds(3);
  result.throughput = 233.0049;
  for (int i = 0; i < 100; ++i) {
    result.latency.record(microseconds(4286));
    result.sent_latency.record(microseconds(4267));
  }
  result.mean_send_us = 226.2;
  result.has_server_statistics = true;
  result.server.inference_count = 841;
  result.server.execution_count = 841;
  result.server.success = {841, 841 * 3'517'000ULL};
  result.server.compute_input = {841, 841 * 249'000ULL};
  result.server.compute_infer = {841, 841 * 3'186'000ULL};
  result.server.compute_output = {841, 841 * 81'000ULL};
  result.stable = true;
  return result;
}

// The expected texts are what perf_analyzer 23.05 printed, with these figures.
TEST(PerfConsole, SettingsArePerfAnalyzers) {
  EXPECT_EQ(perf_settings_text(plan()),
            "*** Measurement Settings ***\n"
            "  Batch size: 1\n"
            "  Service Kind: Triton\n"
            "  Using \"time_windows\" mode for stabilization\n"
            "  Measurement window: 1000 msec\n"
            "  Latency limit: 0 msec\n"
            "  Concurrency limit: 4 concurrent requests\n"
            "  Using synchronous calls for inference\n"
            "  Stabilizing using average latency\n"
            "\n");
}

TEST(PerfConsole, LimitsAreLeftOutWhenTheRangeEndsAtOne) {
  PerfPlan one = plan();
  one.end = 1;

  EXPECT_THAT(perf_settings_text(one), testing::Not(testing::HasSubstr("limit")));
}

TEST(PerfConsole, LevelIsPerfAnalyzers) {
  EXPECT_EQ(perf_level_text(plan(), sample()),
            "Request concurrency: 1\n"
            "  Client: \n"
            "    Request count: 842\n"
            "    Throughput: 233.005 infer/sec\n"
            "    Avg latency: 4286 usec (standard deviation 0 usec)\n"
            "    p50 latency: 4286 usec\n"
            "    p90 latency: 4286 usec\n"
            "    p95 latency: 4286 usec\n"
            "    p99 latency: 4286 usec\n"
            "    Avg HTTP time: 4267 usec (send/recv 226 usec + response wait 4041 usec)\n"
            "  Server: \n"
            "    Inference count: 841\n"
            "    Execution count: 841\n"
            "    Successful request count: 841\n"
            "    Avg request latency: 3517 usec (overhead 1 usec + queue 0 usec + compute input "
            "249 usec + compute infer 3186 usec + compute output 81 usec)\n"
            "\n");
}

TEST(PerfConsole, SummaryIsPerfAnalyzers) {
  EXPECT_EQ(perf_summary_text(plan(), {sample()}),
            "Inferences/Second vs. Client Average Batch Latency\n"
            "Concurrency: 1, throughput: 233.005 infer/sec, latency 4286 usec\n");
}

TEST(PerfConsole, APercentileTakesTheMeansPlace) {
  PerfPlan ninety = plan();
  ninety.rules.percentile = 90;
  LevelResult result = sample();
  result.percentile = 90;

  EXPECT_THAT(perf_settings_text(ninety), testing::HasSubstr("Stabilizing using p90 latency"));
  EXPECT_THAT(perf_level_text(ninety, result), testing::Not(testing::HasSubstr("Avg latency")));
  EXPECT_THAT(perf_summary_text(ninety, {result}),
              testing::HasSubstr("vs. Client p90 Batch Latency"));
}

TEST(PerfConsole, AnUnstableLevelIsMarkedInItsBlockAndInTheSummary) {
  LevelResult result = sample();
  result.stable = false;

  EXPECT_THAT(perf_level_text(plan(), result),
              testing::HasSubstr("Not stable within 10 measurement windows"));
  EXPECT_THAT(perf_summary_text(plan(), {result}), testing::HasSubstr("usec, not stable\n"));
}

TEST(PerfConsole, FailuresAreShownByKind) {
  LevelResult result = sample();
  result.failures.add(FailureKind::kReset, 2);
  result.last_failure = "the connection closed";

  EXPECT_THAT(perf_level_text(plan(), result),
              testing::HasSubstr("Failed requests: 2 (2 reset); the latest: the connection"));
  EXPECT_THAT(perf_summary_text(plan(), {result}), testing::HasSubstr(", 2 failed"));
}

TEST(PerfConsole, OpenLoopsSayTheirRateAndTheDelayedRequests) {
  LevelResult result = sample();
  result.level = {LoadMode::kRequestRate, 40};
  result.delayed = 3;

  const std::string text = perf_level_text(plan(), result);

  EXPECT_THAT(text, testing::StartsWith("Request Rate: 40 inference requests per seconds\n"));
  EXPECT_THAT(text, testing::HasSubstr("Delayed Request Count: 3\n"));
}

TEST(PerfConsole, WindowsArePerfAnalyzersPasses) {
  WindowResult window;
  window.throughput = 250.5;
  window.mean_latency_us = 4100.9;
  window.deviation_us = 320;

  EXPECT_EQ(perf_window_text(plan(), 2, window),
            "  Pass [2] throughput: 250.5 infer/sec. Avg latency: 4100 usec (std 320 usec). \n");
}

TEST(PerfConsole, GpusAreShownBelowTheServer) {
  LevelResult result = sample();
  result.gpus.emplace().add(
      {{{"GPU-a", 0.255}}, {{"GPU-a", 61.5}}, {{"GPU-a", 1'500'000'000}}, {{"GPU-a", 4096}}});

  EXPECT_THAT(perf_level_text(plan(), result), testing::HasSubstr("  Server Prometheus Metrics: \n"
                                                                  "    Avg GPU Utilization:\n"
                                                                  "      GPU-a : 25.5%\n"
                                                                  "    Avg GPU Power Usage:\n"
                                                                  "      GPU-a : 61.5 watts\n"
                                                                  "    Max GPU Memory Usage:\n"
                                                                  "      GPU-a : 1500000000 bytes\n"
                                                                  "    Total GPU Memory:\n"
                                                                  "      GPU-a : 4096 bytes\n"));
}

TEST(PerfConsole, AnEnsemblesPartsFollowIt) {
  PerfPlan plan;
  plan.parts = {{"decode", "2"}, {"resnet", ""}};
  LevelResult result;
  result.has_server_statistics = true;
  result.server.success = {10, 50'000'000};
  result.server.inference_count = result.server.execution_count = 10;
  result.server.queue = {10, 1'000'000};
  result.server.compute_infer = {10, 40'000'000};
  ServerStatistics part = result.server;
  part.success = {10, 45'000'000};
  result.parts = {part, ServerStatistics()};

  EXPECT_THAT(perf_level_text(plan, result),
              testing::HasSubstr(
                  "  Server: \n    Inference count: 10\n    Execution count: 10\n"
                  "    Successful request count: 10\n"
                  "    Avg request latency: 5000 usec (overhead 900 usec + queue 100 usec + "
                  "compute 4000 usec)\n\n"
                  "  Composing models: \n  decode, version: 2\n      Inference count: 10\n"
                  "      Execution count: 10\n      Successful request count: 10\n"
                  "      Avg request latency: 4500 usec (overhead 400 usec + queue 100 usec + "
                  "compute input 0 usec + compute infer 4000 usec + compute output 0 usec)\n\n"
                  "  resnet, version: \n      Request count: 0\n"));
}

}  // namespace
}  // namespace septet::measure
