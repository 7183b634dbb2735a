#include "measure/foreign_results.h"

#include <gmock/gmock.h>

#include <cmath>

namespace septet::measure {
namespace {

using testing::HasSubstr;

constexpr std::string_view kPerfHeader =
    "Concurrency,Inferences/Second,Client Send,Client Recv,p50 latency,p90 latency,p95 latency,"
    "p99 latency";

TEST(ForeignResults, ReadPerfAnalyzersRowsInOrderOfLevelAndWithATrailingComma) {
  // perf_analyzer sorts by throughput; release 23.05 ends verbose lines in a comma.
  const std::string text = std::string(kPerfHeader) +
                           ",\n"
                           "2,488.052,202,0,3896,4575,5509,8099,\n"
                           "1,233.005,226,0,3991,5158,5830,7974,\n";

  const auto rows = parse_any_results(text, "perf.csv", "triton");

  ASSERT_TRUE(rows.ok()) << rows.error().text();
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ(rows->at(0).concurrency, 1);
  EXPECT_EQ(rows->at(0).throughput, 233.005);
  EXPECT_EQ(rows->at(1).p90_us, 4575);
  EXPECT_EQ(rows->at(0).context.run, "triton");
  EXPECT_EQ(rows->at(0).context.replicas, 0);
  EXPECT_EQ(rows->at(0).load, LoadMode::kConcurrency);
}

TEST(ForeignResults, KeepRequestRatesApartFromConcurrency) {
  const auto rows = parse_any_results(
      "Request Rate,Inferences/Second,p50 latency,p90 latency\n50,42.67,4583,5854\n", "r.csv", "r");

  ASSERT_TRUE(rows.ok()) << rows.error().text();
  EXPECT_EQ(rows->at(0).load, LoadMode::kRequestRate);
  EXPECT_EQ(rows->at(0).concurrency, 50);
  EXPECT_TRUE(std::isnan(rows->at(0).p95_us));
}

constexpr std::string_view kWrk =
    "Running 30s test @ http://127.0.0.1:8000/v2\n"
    "  2 threads and 16 connections\n"
    "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n"
    "    Latency   635.91us    0.89ms  12.92ms   93.69%\n"
    "    Req/Sec    56.20k     8.07k   62.00k    86.54%\n"
    "  Latency Distribution\n"
    "     50%  250.00us\n"
    "     75%  491.00us\n"
    "     90%    1.70ms\n"
    "     99%    5.80s\n"
    "  22464657 requests in 30.00s, 17.76GB read\n"
    "  Socket errors: connect 1, read 2, write 0, timeout 4\n"
    "  Non-2xx or 3xx responses: 10\n"
    "Requests/sec: 748868.53\n"
    "Transfer/sec:    606.33MB\n";

TEST(ForeignResults, ReadWrksPrintout) {
  const auto rows = parse_any_results(kWrk, "wrk.txt", "nginx");

  ASSERT_TRUE(rows.ok()) << rows.error().text();
  ASSERT_EQ(rows->size(), 1U);
  const ResultRow& row = rows->at(0);
  EXPECT_EQ(row.concurrency, 16);
  EXPECT_EQ(row.throughput, 748868.53);
  EXPECT_EQ(row.p50_us, 250);
  EXPECT_EQ(row.p90_us, 1700);
  EXPECT_EQ(row.p99_us, 5.8e6);
  EXPECT_TRUE(std::isnan(row.p95_us));
  EXPECT_EQ(row.errors, 17U);
}

TEST(ForeignResults, ReadSeveralPrintoutsOfWrkAndThoseWithoutLatency) {
  const std::string bare =
      "Running 1s test @ x\n  1 threads and 4 connections\nRequests/sec: 100.5\n";

  const auto rows = parse_any_results(bare + bare, "wrk.txt", "nginx");

  ASSERT_TRUE(rows.ok()) << rows.error().text();
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_TRUE(std::isnan(rows->at(1).p90_us));
}

TEST(ForeignResults, ReadSeptetsOwnAndNameTheRun) {
  const auto rows =
      parse_any_results(results_header() + results_line(ResultRow{.context = {.technique = "mig"}}),
                        "results.csv", "monday");

  ASSERT_TRUE(rows.ok()) << rows.error().text();
  EXPECT_EQ(rows->at(0).context.run, "monday");
  EXPECT_EQ(rows->at(0).context.technique, "mig");
}

TEST(ForeignResults, SayWhatIsWrongAndWhere) {
  const auto unknown = parse_any_results("hello\nworld\n", "notes.txt", "notes");
  const auto number =
      parse_any_results(std::string(kPerfHeader) + "\n1,fast,1,1,1,1,1,1\n", "perf.csv", "perf");
  const auto cut = parse_any_results(kWrk.substr(0, 300), "wrk.txt", "wrk");

  ASSERT_FALSE(unknown.ok());
  ASSERT_FALSE(number.ok());
  ASSERT_FALSE(cut.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("notes.txt:1: these are no results"));
  EXPECT_THAT(number.error().message, HasSubstr("perf.csv:2: level and throughput"));
  EXPECT_THAT(cut.error().message, HasSubstr("wrk.txt:1: this printout of wrk has no"));
  EXPECT_FALSE(parse_any_results("", "empty", "e").ok());
}

}  // namespace
}  // namespace septet::measure
