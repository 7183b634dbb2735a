#include "measure/level_json.h"

#include <gmock/gmock.h>

namespace septet::measure {
namespace {

using testing::HasSubstr;
using testing::Not;

LevelResult sample() {
  LevelResult result;
  result.level = {LoadMode::kConcurrency, 4};
  result.measured = milliseconds(2500);
  result.completed = 3;
  result.throughput = 1.2;
  result.latency.record(Duration(900));
  result.latency.record(Duration(1025));
  result.latency.record(Duration(1024));
  return result;
}

TEST(LevelJson, IsOneLineOfItsSchema) {
  const std::string line = level_json(sample(), {});

  EXPECT_THAT(line, testing::StartsWith(R"({"schema":"septet.perf/1",)"));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_THAT(line, HasSubstr(R"("mode":"concurrency","loop":"closed","level":4)"));
}

TEST(LevelJson, HistogramsListTheBucketsThatHoldSomething) {
  EXPECT_THAT(level_json(sample(), {}), HasSubstr(R"("buckets_ns":[[900,1],[1024,2]])"));
}

TEST(LevelJson, AnUnstableLevelAndItsFailuresAreMarked) {
  LevelResult result = sample();
  result.failures.add(FailureKind::kTimeout, 2);

  const std::string line = level_json(result, {});

  EXPECT_THAT(line, HasSubstr(R"("stable":false)"));
  EXPECT_THAT(line, HasSubstr(R"("failures":{"total":2,"connect":0,"reset":0,"timeout":2,)"));
}

TEST(LevelJson, OpenLoopsHaveBothLatencies) {
  LevelResult result = sample();
  EXPECT_THAT(level_json(result, {}), Not(HasSubstr("latency_from_sent")));

  result.level.mode = LoadMode::kRequestRate;
  EXPECT_THAT(level_json(result, {}), HasSubstr("latency_from_sent"));
}

TEST(LevelJson, WindowsAreKept) {
  LevelResult result = sample();
  result.windows.resize(2);
  result.windows[1].merged = true;
  result.windows[1].start = milliseconds(500);

  EXPECT_THAT(level_json(result, {}), HasSubstr(R"({"start_s":0.5,)"));
}

TEST(LevelJson, GpusSayWhatIsKnown) {
  LevelResult result = sample();
  result.gpus.emplace().add({{{"GPU-a", 0.5}}, {}, {{"GPU-b", 7}}, {{"GPU-a", 9}}});

  EXPECT_THAT(level_json(result, {}),
              HasSubstr(R"("gpus":[{"gpu_uuid":"GPU-a","utilization_mean":0.5,)"
                        R"("memory_total_bytes":9},{"gpu_uuid":"GPU-b",)"
                        R"("memory_used_bytes_max":7}])"));
}

}  // namespace
}  // namespace septet::measure
