#include "measure/verdict.h"

#include <gmock/gmock.h>

#include <limits>

namespace septet::measure {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ResultRow cell(const std::string& technique, int replicas, int concurrency, double throughput,
               double p90_ms) {
  ResultRow row;
  row.context.technique = technique;
  row.context.replicas = replicas;
  row.concurrency = concurrency;
  row.throughput = throughput;
  row.throughput_half_width = throughput * 0.02;
  row.p50_us = row.p90_us = row.p95_us = row.p99_us = p90_ms * 1000;
  row.p90_half_width_us = row.p90_us * 0.03;
  return row;
}

auto says(FindingKind kind, const std::string& part) {
  return AllOf(Field(&Finding::kind, kind), Field(&Finding::text, HasSubstr(part)));
}

TEST(Verdict, SaysThatThroughputGrowsAndLatencyFallsWithReplicas) {
  const auto findings = draw_verdict({cell("mig", 1, 8, 4.1, 1960), cell("mig", 7, 8, 29.2, 272)});

  EXPECT_THAT(findings,
              ElementsAre(says(FindingKind::kDifference,
                               "grew with replicas: from 4.10 \u00b1 0.08 with 1 replica to 29.2 "
                               "\u00b1 0.6 inferences/s with 7, 7.12 times as much (102 % of"),
                          says(FindingKind::kDifference,
                               "at concurrency 8, the p90 latency fell from 1.96 s with 1 replica "
                               "to 272 ms with 7: 7.21 times shorter")));
}

TEST(Verdict, ClaimsNoGrowthWithinTheUncertainty) {
  const auto findings = draw_verdict({cell("mps", 1, 4, 100, 40), cell("mps", 2, 4, 102, 40.5)});

  EXPECT_THAT(findings, Each(Field(&Finding::kind, FindingKind::kNoDifference)));
  EXPECT_THAT(findings, Contains(Field(&Finding::text, HasSubstr("do not show"))));
}

TEST(Verdict, SaysWhenThroughputFellOrDidNotGrowAtEveryStep) {
  const auto fell =
      draw_verdict({cell("time-slicing", 1, 4, 153, 7), cell("time-slicing", 7, 4, 92, 77)});
  const auto bumpy = draw_verdict({cell("mig", 1, 8, 4, 1), cell("mig", 2, 8, 8, 1),
                                   cell("mig", 4, 8, 7, 1), cell("mig", 7, 8, 20, 1)});

  EXPECT_THAT(fell, Contains(says(FindingKind::kDifference, "throughput fell")));
  EXPECT_THAT(fell, Contains(says(FindingKind::kDifference, "the p90 latency rose")));
  EXPECT_THAT(bumpy, Contains(says(FindingKind::kDifference, "though not at every step")));
}

TEST(Verdict, ComparesPartitionsWithEachUndividedTechniqueAtAFairLevel) {
  const auto findings =
      draw_verdict({cell("mig", 7, 4, 16, 250), cell("mig", 7, 8, 29.2, 272),
                    cell("mig", 7, 64, 29, 2000), cell("time-slicing", 7, 4, 17, 300),
                    cell("time-slicing", 7, 8, 29.6, 400), cell("time-slicing", 7, 64, 29, 2100)});

  EXPECT_THAT(findings, ElementsAre(says(
                            FindingKind::kDifference,
                            "With 7 replicas on MIG partitions instead of time-slicing, at "
                            "concurrency 8, no difference in throughput can be told (29.2 \u00b1 "
                            "0.6 against 29.6 \u00b1 0.6 inferences/s); the p90 latency is 32 % "
                            "shorter (272 ms against 400 ms)")));
}

TEST(Verdict, NeverComparesDifferentReplicaCountsOrRuns) {
  ResultRow other = cell("time-slicing", 7, 8, 10, 900);
  other.context.run = "other";
  ResultRow own = cell("mig", 7, 8, 29, 272);
  own.context.run = "own";

  EXPECT_THAT(draw_verdict({cell("mig", 7, 8, 29, 272), cell("time-slicing", 1, 8, 4, 900)}),
              IsEmpty());
  EXPECT_THAT(draw_verdict({own, other}), IsEmpty());
}

TEST(Verdict, TakesARowWithoutIntervalAsUncertainBy10Percent) {
  ResultRow first = cell("mig", 1, 8, 100, 10);
  ResultRow second = cell("mig", 2, 8, 112, 10);
  EXPECT_EQ(compare_throughput(first, second).order, Order::kHigher);

  first.throughput_half_width.reset();
  second.throughput_half_width.reset();

  EXPECT_EQ(compare_throughput(first, second).order, Order::kUnknown);
  EXPECT_THAT(draw_verdict({first, second}),
              Contains(says(FindingKind::kCaution, "2 of 2 measurements have no confidence")));
}

TEST(Verdict, DoubtsUnstableRowsAndSaysSo) {
  ResultRow first = cell("mig", 1, 8, 100, 10);
  ResultRow second = cell("mig", 2, 8, 125, 10);
  second.stable = false;

  EXPECT_EQ(compare_throughput(first, second).order, Order::kUnknown);
  EXPECT_THAT(draw_verdict({first, second}),
              Contains(says(FindingKind::kCaution, "1 of 2 measurements did not become stable")));
}

TEST(Verdict, DoesNotDivideByNothing) {
  const Comparison none = compare_throughput(cell("mig", 1, 1, 0, 0), cell("mig", 2, 1, 10, 1));

  EXPECT_EQ(none.order, Order::kUnknown);
  EXPECT_EQ(none.ratio, 1);
}

TEST(Verdict, TellsOfFailuresSimulationAndTooLittleLoad) {
  ResultRow row = cell("mig", 7, 4, 16, 250);
  row.errors = 3;
  row.context.simulated = true;
  row.context.gpu = "A100-SXM4-40GB";

  EXPECT_THAT(draw_verdict({row}),
              ElementsAre(says(FindingKind::kCaution, "fewer requests in flight than"),
                          says(FindingKind::kCaution, "3 requests failed, in 1 of 1 measurement;"),
                          says(FindingKind::kCaution, "The A100-SXM4-40GB was simulated")));
}

TEST(Verdict, ClaimsNoLimitsWhereThereWereNone) {
  ResultRow row = cell("mig", 7, 4, 16, 250);
  row.context.simulated = true;
  row.context.limited = false;

  EXPECT_THAT(draw_verdict({row}), ::testing::Contains(says(FindingKind::kCaution,
                                                            "simulated without limits per slice")));
}

TEST(Verdict, CallsDifferentPartitionSizesNoScalingByReplicas) {
  ResultRow whole = cell("mig", 1, 8, 40, 100);
  whole.context.profile = "7g.40gb";
  ResultRow sevenths = cell("mig", 7, 8, 80, 50);
  sevenths.context.profile = "1g.5gb";

  EXPECT_THAT(draw_verdict({whole, sevenths}), IsEmpty());
}

TEST(Verdict, ComparesTheSameConfigurationOfLaterRunsWithTheFirst) {
  ResultRow monday = cell("mig", 7, 8, 20, 400);
  monday.context.run = "monday";
  ResultRow friday = cell("mig", 7, 8, 30, 280);
  friday.context.run = "friday";

  EXPECT_THAT(
      draw_verdict({monday, friday}),
      ElementsAre(says(FindingKind::kDifference,
                       "friday, 7 \u00d7 MIG against monday, 7 \u00d7 MIG, each at its best: "
                       "throughput is 50 % higher (30.0 \u00b1 0.6 against 20.0 \u00b1 0.4 "
                       "inferences/s); at concurrency 8, the p90 latency is 30 % shorter "
                       "(280 ms against 400 ms)")));
}

TEST(Verdict, ComparesForeignRunsAlsoWithoutAKnownPercentile) {
  ResultRow own = cell("", 0, 8, 1000, 10);
  own.context.run = "septet";
  ResultRow other = cell("", 0, 8, 990, 10);
  other.context.run = "nginx";
  other.p90_us = std::numeric_limits<double>::quiet_NaN();

  EXPECT_THAT(
      draw_verdict({own, other}),
      ElementsAre(says(FindingKind::kNoDifference,
                       "nginx against septet, each at its best: no difference in throughput "
                       "can be told (990 \u00b1 20 against 1000 \u00b1 20 inferences/s); at "
                       "concurrency 8, no difference in the p90 latency can be told (- "
                       "against 10 ms)")));
}

TEST(Verdict, IsEmptyWithoutRows) { EXPECT_THAT(draw_verdict({}), IsEmpty()); }

}  // namespace
}  // namespace septet::measure
