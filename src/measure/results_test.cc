#include "measure/results.h"

#include <gmock/gmock.h>

namespace septet::measure {
namespace {

using testing::HasSubstr;

ResultRow sample_row() {
  ResultRow row;
  row.context = {.technique = "mig",
                 .replicas = 7,
                 .seed = 3,
                 .machine = "2 cores, Xeon \"2.8\"",
                 .commit = "abc1234",
                 .model = "densenet_onnx",
                 .profile = "1g.5gb",
                 .gpu = "A100-SXM4-40GB",
                 .simulated = true};
  row.concurrency = 8;
  row.throughput = 29.25;
  row.p50_us = 240'000;
  row.p90_us = 272'123.5;
  row.p95_us = 280'000;
  row.p99_us = 300'000;
  row.errors = 1;
  row.stable = false;
  row.throughput_half_width = 0.5;
  return row;
}

TEST(Results, ReadBackWhatWasWritten) {
  const std::vector<ResultRow> rows = {sample_row(), ResultRow{.context = {.technique = "mps"}}};

  const auto read =
      parse_results(results_header() + results_line(rows[0]) + results_line(rows[1]), "r.csv");

  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(*read, rows);
}

TEST(Results, HaveAFixedHeaderAndLine) {
  EXPECT_EQ(results_header(),
            "technique,replicas,concurrency,throughput,p50,p90,p95,p99,errors,seed,machine,commit,"
            "model,gpu,simulated,stable,throughput_half_width,p90_half_width,profile,limited\n");
  EXPECT_EQ(results_line(sample_row()),
            "mig,7,8,29.25,240000,272123.5,280000,300000,1,3,\"2 cores, Xeon \"\"2.8\"\"\",abc1234,"
            "densenet_onnx,A100-SXM4-40GB,true,false,0.5,,1g.5gb,true\n");
}

TEST(Results, AreReadByColumnNameInAnyOrderAndWithoutTheLaterColumns) {
  const auto read = parse_results(
      "new,concurrency,technique,replicas,throughput,p99,p95,p90,p50,errors,seed,machine,commit\n"
      "x,2,mig,1,4.5,4,3,2,1,0,1,m,c\n",
      "r.csv");

  ASSERT_TRUE(read.ok()) << read.error().text();
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ(read->at(0).concurrency, 2);
  EXPECT_EQ(read->at(0).p90_us, 2);
  EXPECT_TRUE(read->at(0).stable);
}

TEST(Results, LeaveOutALineCutOffByACrash) {
  const std::string whole = results_header() + results_line(sample_row());
  const std::string next = results_line(sample_row());
  for (std::size_t cut = 0; cut < next.size(); ++cut) {
    const auto read = parse_results(whole + next.substr(0, cut), "r.csv");

    ASSERT_TRUE(read.ok()) << read.error().text();
    EXPECT_EQ(read->size(), 1U) << cut;
  }
}

TEST(Results, NameFileLineAndColumnOfABrokenValue) {
  std::string line = results_line(sample_row());
  line.replace(line.find("29.25"), 5, "fast");

  const auto read = parse_results(results_header() + results_line(sample_row()) + line, "r.csv");

  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("r.csv:3: 'fast' is no value for 'throughput'"));
}

TEST(Results, RefuseAFileWithoutANeededColumn) {
  const auto read = parse_results("technique,replicas\nmig,1\n", "r.csv");

  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("no column 'concurrency'"));
}

TEST(Results, TakeTheIntervalOfP90OnlyWhenP90WasJudged) {
  LevelResult level;
  level.level = {LoadMode::kConcurrency, 4};
  level.throughput_interval = ConfidenceInterval{10, 1};
  level.latency_interval = ConfidenceInterval{5000, 200};

  EXPECT_EQ(result_row({}, level).p90_half_width_us, std::nullopt);
  EXPECT_EQ(result_row({}, level).throughput_half_width, 1);
  level.percentile = 90;
  EXPECT_EQ(result_row({}, level).p90_half_width_us, 200);
}

}  // namespace
}  // namespace septet::measure
