#include "measure/perf_csv.h"

#include <gtest/gtest.h>

namespace septet::measure {
namespace {

// The figures of the row "4,951.297,161,528,0,228,3245,38,0,..." that perf_analyzer 23.05 wrote.
LevelResult sample() {
  LevelResult result;
  result.level = {LoadMode::kConcurrency, 4};
  result.throughput = 951.2974;
  result.mean_send_us = 161.9;
  result.mean_receive_us = 0.7;
  for (int i = 0; i < 100; ++i) {
    result.latency.record(microseconds(4200));
  }
  result.server.queue = {10, 9'000};
  result.server.compute_input = {10, 2'280'000};
  result.server.compute_infer = {10, 32'450'000};
  result.server.compute_output = {10, 389'999};
  return result;
}

TEST(PerfCsv, HeaderIsPerfAnalyzers) {
  EXPECT_EQ(perf_csv_header({}),
            "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,"
            "Server Compute Input,Server Compute Infer,Server Compute Output,Client Recv,"
            "p50 latency,p90 latency,p95 latency,p99 latency\n");
}

TEST(PerfCsv, RowHasSixDigitsAndWholeMicroseconds) {
  // network = 4200 - 161 - 0 - 0 - 228 - 3245 - 38
  const std::string row = perf_csv_row({}, sample());

  EXPECT_EQ(row, "4,951.297,161,528,0,228,3245,38,0,4200,4200,4200,4200\n");
}

TEST(PerfCsv, LargeThroughputsAreWrittenAsStreamsWriteThem) {
  LevelResult result = sample();
  result.throughput = 1'234'567.0;

  EXPECT_EQ(perf_csv_row({}, result).substr(0, 14), "4,1.23457e+06,");
}

TEST(PerfCsv, OpenLoopsHaveARequestRate) {
  LevelResult result = sample();
  result.level = {LoadMode::kRequestRate, 12.5};

  PerfCsvFormat format;
  format.mode = LoadMode::kRequestRate;

  EXPECT_TRUE(perf_csv_header(format).starts_with("Request Rate,"));
  EXPECT_TRUE(perf_csv_row(format, result).starts_with("12.5,951.297,"));
}

TEST(PerfCsv, ServerColumnsVanishTogether) {
  PerfCsvFormat format;
  format.server_columns = false;

  EXPECT_EQ(perf_csv_header(format),
            "Concurrency,Inferences/Second,Client Send,Client Recv,p50 latency,p90 latency,"
            "p95 latency,p99 latency\n");
  EXPECT_EQ(perf_csv_row(format, sample()), "4,951.297,161,0,4200,4200,4200,4200\n");
}

TEST(PerfCsv, CacheColumnsStandBeforeClientRecv) {
  PerfCsvFormat format;
  format.cache_columns = true;
  LevelResult result = sample();
  result.server.cache_hit = {2, 8'000};

  EXPECT_NE(perf_csv_header(format).find(
                "Server Compute Output,Server Cache Hit,Server Cache Miss,Client Recv"),
            std::string::npos);
  EXPECT_EQ(perf_csv_row(format, result),
            "4,951.297,161,524,0,228,3245,38,4,0,0,4200,4200,4200,4200\n");
}

TEST(PerfCsv, AnUnusualPercentileStandsInOrderAndAUsualOneAddsNothing) {
  PerfCsvFormat format;
  format.percentile = 85;
  EXPECT_NE(perf_csv_header(format).find("p50 latency,p85 latency,p90 latency"), std::string::npos);

  format.percentile = 90;
  EXPECT_EQ(perf_csv_header(format), perf_csv_header({}));
}

TEST(PerfCsv, VerboseAppendsMeanSendReceiveAndWaitWithoutATrailingComma) {
  PerfCsvFormat format;
  format.verbose = true;

  EXPECT_TRUE(perf_csv_header(format).ends_with(
      "p99 latency,Avg latency,request/response,response wait\n"));
  EXPECT_TRUE(perf_csv_row(format, sample()).ends_with(",4200,4200,161,4039\n"));
}

GpuReading two_gpus() {
  return {{{"GPU-a", 0.25}, {"GPU-b", 1}},
          {{"GPU-a", 61.5}},
          {{"GPU-a", 1'500'000'000}},
          {{"GPU-a", 42'949'672'960}}};
}

TEST(PerfCsv, GpusAreListsInTheVerboseColumns) {
  PerfCsvFormat format;
  format.verbose = true;
  format.gpu_columns = true;
  LevelResult result = sample();
  result.gpus.emplace().add(two_gpus());

  EXPECT_TRUE(perf_csv_header(format).ends_with(
      ",response wait,Avg GPU Utilization,Avg GPU Power Usage,Max GPU Memory Usage,"
      "Total GPU Memory\n"));
  EXPECT_TRUE(perf_csv_row(format, result)
                  .ends_with(",GPU-a:0.25;GPU-b:1;,GPU-a:61.5;,GPU-a:1500000000;,"
                             "GPU-a:42949672960;\n"));
  result.gpus.reset();
  EXPECT_TRUE(perf_csv_row(format, result).ends_with(",,,,\n"));
  format.verbose = false;
  EXPECT_TRUE(perf_csv_header(format).ends_with("p99 latency\n"));
}

TEST(PerfCsv, APartsFileHasItsOwnCountersAndNoPercentiles) {
  PerfCsvFormat format;
  LevelResult result;
  result.level = {LoadMode::kConcurrency, 4};
  result.throughput = 100;
  result.server.success = {50, 50'000'000};
  ServerStatistics part;
  part.success = {100, 1'000'000'000};
  part.queue = {100, 200'000'000};
  part.compute_input = {100, 10'000'000};
  part.compute_infer = {100, 700'000'000};
  part.compute_output = {100, 20'000'000};
  part.cache_hit = {100, 1'000'000};
  result.parts = {ServerStatistics(), part};

  EXPECT_EQ(perf_part_csv_header(format, false),
            "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,"
            "Server Compute Input,Server Compute Infer,Server Compute Output,Client Recv\n");
  EXPECT_EQ(perf_part_csv_row(result, 1, false), "4,200,0,690,2000,100,7000,200,0\n");
  EXPECT_EQ(perf_part_csv_row(result, 1, true), "4,200,0,690,2000,100,7000,200,10,0,0\n");
  EXPECT_EQ(perf_part_csv_row(result, 0, false), "4,0,0,0,0,0,0,0,0\n");
}

TEST(PerfCsv, APartsFileStandsBesideTheEnsembles) {
  EXPECT_EQ(perf_part_csv_file("perf.csv", {"resnet", "3"}), "resnet_v3.perf.csv");
  EXPECT_EQ(perf_part_csv_file("out/perf.csv", {"resnet", ""}), "out/resnet_v.perf.csv");
}

}  // namespace
}  // namespace septet::measure
