#include "measure/level_result.h"

#include <gtest/gtest.h>

namespace septet::measure {
namespace {

TEST(FailureCounts, TextNamesEachKindThatOccurred) {
  FailureCounts counts;
  counts.add(FailureKind::kReset);
  counts.add(FailureKind::kConnect, 3);

  EXPECT_EQ(counts.text(), "3 connect, 1 reset");
  EXPECT_EQ(counts.total(), 4U);
}

TEST(FailureCounts, TextOfNoFailureSaysNone) { EXPECT_EQ(FailureCounts{}.text(), "none"); }

TEST(ServerStatistics, DifferenceOfCountersThatWentBackIsZero) {
  ServerStatistics before;
  before.inference_count = 10;
  before.queue = {10, 1000};
  ServerStatistics after;
  after.inference_count = 3;
  after.queue = {3, 200};

  const ServerStatistics difference = ServerStatistics::difference(after, before);

  EXPECT_EQ(difference.inference_count, 0U);
  EXPECT_EQ(difference.queue, (ServerDuration{0, 0}));
}

TEST(ServerDuration, MeanMicrosecondsAreTruncated) {
  EXPECT_EQ((ServerDuration{3, 5'999}).mean_us(), 1U);
  EXPECT_EQ((ServerDuration{0, 0}).mean_us(), 0U);
}

}  // namespace
}  // namespace septet::measure
