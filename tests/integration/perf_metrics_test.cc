// septet perf --collect-metrics: the GPUs of the server that is measured.
#include <gmock/gmock.h>

#include "integration/perf_fixture.h"
#include "support/simulated_server.h"

namespace septet {
namespace {

using test::PerfTest;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPage = R"(# TYPE nv_gpu_utilization gauge
nv_gpu_utilization{gpu_uuid="GPU-a"} 0.25
nv_gpu_power_usage{gpu_uuid="GPU-a"} 61.5
nv_gpu_memory_used_bytes{gpu_uuid="GPU-a"} 1500000000
nv_gpu_memory_total_bytes{gpu_uuid="GPU-a"} 42949672960
)";

class PerfMetricsTest : public PerfTest {
 protected:
  // Against a server whose page says so.
  int run_with(const std::string& page, std::vector<std::string> words) {
    test::ServerBehaviour behaviour;
    behaviour.metrics_page = page;
    const test::SimulatedServer server(behaviour);
    const std::string address = server.endpoint().text();
    words.insert(words.end(), {"-u", address, "--collect-metrics", "--metrics-url",
                               address + "/metrics", "-p", "50", "-r", "3", "-s", "100000"});
    return run(words);
  }
};

TEST_F(PerfMetricsTest, ConsoleAndCsvShowTheGpus) {
  const int code = run_with(kPage, {"--metrics-interval", "10", "--concurrency-range", "2", "-f",
                                    file("perf.csv"), "--verbose-csv"});

  EXPECT_EQ(code, 0) << output_;
  EXPECT_THAT(output_, HasSubstr("    Avg GPU Utilization:\n      GPU-a : 25%\n"));
  EXPECT_THAT(output_, Not(HasSubstr("WARNING")));
  EXPECT_THAT(lines("perf.csv").front(), EndsWith(",Max GPU Memory Usage,Total GPU Memory"));
  EXPECT_THAT(lines("perf.csv").back(),
              EndsWith(",GPU-a:0.25;,GPU-a:61.5;,GPU-a:1500000000;,GPU-a:42949672960;"));
  EXPECT_THAT(lines("perf.csv.jsonl").back(), HasSubstr(R"("gpus":[{"gpu_uuid":"GPU-a",)"));
}

TEST_F(PerfMetricsTest, AServerWithoutGpuMetricsIsWarnedOfAndMeasured) {
  const int code =
      run_with("nv_inference_count{model=\"m\"} 1\n", {"-f", file("perf.csv"), "--verbose-csv"});

  EXPECT_EQ(code, 0) << output_;
  for (const char* name : {"nv_gpu_utilization", "nv_gpu_power_usage", "nv_gpu_memory_used_bytes",
                           "nv_gpu_memory_total_bytes"}) {
    EXPECT_THAT(output_, HasSubstr(std::string("WARNING: Unable to parse '") + name + "' metric."));
  }
  EXPECT_THAT(lines("perf.csv").back(), EndsWith(",,,,"));
}

TEST_F(PerfMetricsTest, APageThatIsNotThereIsNamed) {
  EXPECT_EQ(run_with("", {}), 1) << output_;
  EXPECT_THAT(output_, HasSubstr("/metrics: it answered 404"));
  EXPECT_THAT(output_, HasSubstr("--metrics-url"));
}

// septet's own server, whose GPUs are told about elsewhere.
TEST_F(PerfMetricsTest, SeptetServeHasAPage) {
  if (const auto why = test::cannot_serve("digits")) {
    GTEST_SKIP() << *why;
  }
  test::SeptetRun server(folder_, "serve",
                         {"serve", "--model-repository", std::string(SEPTET_SOURCE_DIR) + "/models",
                          "--model", "digits", "--listen", "127.0.0.1:0"});
  ASSERT_TRUE(test::eventually(seconds(60), [&] {
    return server.output().find("septet: ready\n") != std::string::npos;
  })) << server.output();
  const std::string text = server.output();
  const std::size_t at = text.find("127.0.0.1:");
  const std::string address = text.substr(at, text.find_first_not_of("0123456789.:", at) - at);

  test::SeptetRun perf(folder_, "perf",
                       {"perf", "-m", "digits", "-u", address, "--collect-metrics", "--metrics-url",
                        address + "/metrics", "--request-count", "20"});
  const auto status = perf.wait(seconds(120));

  EXPECT_TRUE(status && status->code == 0) << perf.output();
  EXPECT_THAT(perf.output(), HasSubstr("Unable to parse 'nv_gpu_utilization' metric."));
}

}  // namespace
}  // namespace septet
