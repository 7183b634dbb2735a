#include "measure/gpu_metrics.h"

#include <gmock/gmock.h>

namespace septet::measure {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr const char* kPage = R"(# HELP nv_gpu_utilization GPU utilization rate [0.0 - 1.0)
# TYPE nv_gpu_utilization gauge
nv_gpu_utilization{gpu_uuid="GPU-a"} 0.250000
nv_gpu_utilization{gpu_uuid="GPU-b",node="n"} 0.5 1700000000000
nv_gpu_power_usage{gpu_uuid="GPU-a"} 61.500000
nv_gpu_power_limit{gpu_uuid="GPU-a"} 300
nv_gpu_memory_used_bytes{gpu_uuid="GPU-a"} 1.5e+09
nv_gpu_memory_total_bytes{gpu_uuid="GPU-a"} 42949672960
nv_inference_request_success{model="m",version="1"} 12
nv_gpu_utilization{gpu_uuid="GPU-c"} nonsense
)";

TEST(GpuMetrics, APageIsReadByGpu) {
  const GpuReading reading = parse_gpu_metrics(kPage);

  EXPECT_THAT(reading.utilization, ElementsAre(Pair("GPU-a", 0.25), Pair("GPU-b", 0.5)));
  EXPECT_THAT(reading.power_watts, ElementsAre(Pair("GPU-a", 61.5)));
  EXPECT_THAT(reading.memory_used_bytes, ElementsAre(Pair("GPU-a", 1'500'000'000U)));
  EXPECT_THAT(reading.memory_total_bytes, ElementsAre(Pair("GPU-a", 42'949'672'960U)));
  EXPECT_THAT(missing_gpu_metrics(reading), IsEmpty());
}

TEST(GpuMetrics, APageOfAnotherKindSaysNothing) {
  for (const char* page : {"", "<html>{", "{\"gpu_uuid\":\"\"}", "nv_gpu_utilization 1\n"}) {
    EXPECT_THAT(missing_gpu_metrics(parse_gpu_metrics(page)),
                ElementsAre("nv_gpu_utilization", "nv_gpu_power_usage", "nv_gpu_memory_used_bytes",
                            "nv_gpu_memory_total_bytes"))
        << page;
  }
}

TEST(GpuMetrics, FiguresAreMeansAndTheMostMemory) {
  GpuFigures first;
  first.add({{{"g", 0.2}}, {{"g", 10}}, {{"g", 300}}, {{"g", 1000}}});
  first.add({{{"g", 0.4}}, {{"g", 20}}, {{"g", 100}}, {{"g", 1000}}});
  GpuFigures second;
  second.add({{{"g", 0.9}, {"h", 0.1}}, {{"g", 60}}, {{"g", 200}}, {{"g", 1000}}});

  first.merge(second);

  EXPECT_NEAR(first.utilization().at("g"), 0.5, 1e-9);
  EXPECT_NEAR(first.utilization().at("h"), 0.1, 1e-9);
  EXPECT_NEAR(first.power_watts().at("g"), 30, 1e-9);
  EXPECT_EQ(first.most_memory_bytes().at("g"), 300U);
  EXPECT_EQ(first.total_memory_bytes().at("g"), 1000U);
}

}  // namespace
}  // namespace septet::measure
