// septet perf as a script sees it: perf_analyzer's words in, its lines, file and exit codes out.

#include <gmock/gmock.h>

#include <csignal>
#include <optional>
#include <thread>

#include "integration/perf_fixture.h"
#include "support/simulated_server.h"

namespace septet {
namespace {

using test::PerfTest;
using testing::HasSubstr;

TEST_F(PerfTest, ASweepWritesPerfAnalyzersFileInOrderOfLevel) {
  const test::SimulatedServer server({});

  const int code = run({"-u", server.endpoint().text(), "-i", "HTTP", "--concurrency-range=1:3",
                        "-p", "100", "-s", "100000", "-r", "3", "--input-data", "zero", "-b", "2",
                        "--percentile=85", "-f", file("perf.csv")});

  EXPECT_EQ(code, 0) << output_;
  EXPECT_THAT(output_, testing::StartsWith("*** Measurement Settings ***\n  Batch size: 2\n"));
  EXPECT_THAT(output_, HasSubstr("Inferences/Second vs. Client p85 Batch Latency\n"
                                 "Concurrency: 1, throughput: "));
  ASSERT_EQ(lines("perf.csv").size(), 4U);
  EXPECT_EQ(lines("perf.csv")[0],
            "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,"
            "Server Compute Input,Server Compute Infer,Server Compute Output,Client Recv,"
            "p50 latency,p85 latency,p90 latency,p95 latency,p99 latency");
  for (std::size_t level = 1; level <= 3; ++level) {
    EXPECT_THAT(lines("perf.csv")[level], testing::StartsWith(std::to_string(level) + ","));
    EXPECT_EQ(split(lines("perf.csv")[level], ',').size(), 14U);
  }
  EXPECT_EQ(lines("perf.csv.jsonl").size(), 3U);
}

TEST_F(PerfTest, WithoutAWordAboutWindowsTheyAreAdaptive) {
  test::ServerBehaviour behaviour;
  behaviour.service_time = [](auto, auto&) { return milliseconds(1); };
  const test::SimulatedServer server(behaviour);

  // A load on the machine may keep the intervals wide, so the latency limit ends it early.
  EXPECT_EQ(run({"-u", server.endpoint().text(), "-l", "1"}), 0) << output_;

  EXPECT_THAT(output_, HasSubstr("Using \"adaptive_windows\" mode for stabilization\n"));
}

TEST_F(PerfTest, AFailedRequestAndAnUnstableLevelKeepTheirRowsAndAreMarked) {
  test::ServerBehaviour behaviour;
  behaviour.service_time = [](auto, auto&) { return milliseconds(1); };
  behaviour.reply = [](std::uint64_t index) {
    return index == 5 ? test::Reply::kRefuse : test::Reply::kAnswer;
  };
  const test::SimulatedServer server(behaviour);

  const int code = run({"-u", server.endpoint().text(), "--concurrency-range", "1:2", "-p", "100",
                        "-s", "0.0000001", "-r", "3", "-f", file("perf.csv")});

  EXPECT_EQ(code, 0) << output_;
  EXPECT_EQ(lines("perf.csv").size(), 3U);
  EXPECT_THAT(output_, HasSubstr("Failed requests: 1 (1 refused)"));
  EXPECT_THAT(output_, HasSubstr(", 1 failed, not stable\n"));
  EXPECT_THAT(test::read_text(file("perf.csv.jsonl")), HasSubstr(R"("stable":false)"));
}

TEST_F(PerfTest, CtrlCKeepsTheRowsSoFar) {
  test::ServerBehaviour behaviour;
  behaviour.service_time = [](auto, auto&) { return milliseconds(1); };
  const test::SimulatedServer server(behaviour);
  test::SeptetRun program = start({"-u", server.endpoint().text(), "--concurrency-range", "1:50",
                                   "-p", "100", "-s", "100000", "-r", "3", "-f", file("perf.csv")});

  // The header and the first row are there, so the second level runs.
  while (lines("perf.csv").size() < 2) {
    ASSERT_FALSE(program.process().poll_exit().has_value()) << program.output();
    std::this_thread::yield();
  }
  program.process().send_signal(SIGINT);
  const std::optional<os::ExitStatus> status = program.wait(seconds(30));

  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->code, 0);
  EXPECT_GE(lines("perf.csv").size(), 2U);
  EXPECT_LT(lines("perf.csv").size(), 50U);
  EXPECT_THAT(program.output(), HasSubstr("Inferences/Second vs. Client Average Batch Latency\n"));
}

TEST_F(PerfTest, WhatIsWrongIsSaidInOneLineWithItsExitCode) {
  const test::SimulatedServer server({});
  const std::string url = server.endpoint().text();

  EXPECT_EQ(run({"-u", url, "--concurrency-range", "1:0"}), 2);
  EXPECT_THAT(output_, HasSubstr("--latency-threshold"));
  EXPECT_EQ(run({"-u", "127.0.0.1:1"}), 3);
  EXPECT_THAT(output_, HasSubstr("septet serve"));
  EXPECT_EQ(run({"-u", url, "-b", "99"}), 2);
  EXPECT_THAT(output_, HasSubstr("max_batch_size 8"));
  EXPECT_EQ(run({"-u", url, "-f", folder_.path() + "/no/such/folder/perf.csv"}), 6);
  EXPECT_EQ(split(trim(output_), '\n').size(), 1U) << output_;
}

TEST_F(PerfTest, AFullDiskIsSaidBeforeAnythingIsMeasured) {
  const test::SimulatedServer server({});

  const int code = run({"-u", server.endpoint().text(), "-p", "50", "-r", "1", "-f", "/dev/full"});

  EXPECT_EQ(code, 1);
  EXPECT_THAT(output_, HasSubstr("/dev/full"));
}

}  // namespace
}  // namespace septet
