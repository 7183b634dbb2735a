#include "measure/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/prng.h"

namespace septet::measure {
namespace {

TEST(Histogram, BucketsTileTheNumbersWithoutGapOrOverlap) {
  std::uint64_t expected_begin = 0;
  for (std::size_t bucket = 0; bucket < 20'000; ++bucket) {
    ASSERT_EQ(Histogram::bucket_begin(bucket), expected_begin) << bucket;
    const std::uint64_t last = expected_begin + Histogram::bucket_width(bucket) - 1;
    ASSERT_EQ(Histogram::bucket_of(expected_begin), bucket);
    ASSERT_EQ(Histogram::bucket_of(last), bucket);
    expected_begin = last + 1;
  }
}

TEST(Histogram, PercentilesFollowPerfAnalyzersRank) {
  Histogram histogram;
  for (int ns = 1; ns <= 10; ++ns) {
    histogram.record(Duration(ns));
  }

  // rank floor(p / 100 x 9 + 0.5): 50 -> 5, 90 -> 8, 95 -> 9, 99 -> 9
  EXPECT_EQ(histogram.percentile_ns(50), 6);
  EXPECT_EQ(histogram.percentile_ns(90), 9);
  EXPECT_EQ(histogram.percentile_ns(95), 10);
  EXPECT_EQ(histogram.percentile_ns(0), 1);
  EXPECT_EQ(histogram.percentile_ns(100), 10);
}

TEST(Histogram, PercentilesOfLongTailsAreWithinATenthOfAPercentOfTheSample) {
  Prng prng(7);
  Histogram histogram;
  std::vector<double> samples;
  for (int i = 0; i < 100'000; ++i) {
    const auto value = from_seconds(0.001 * std::exp(3 * prng.exponential() / 4));
    histogram.record(value);
    samples.push_back(static_cast<double>(value.count()));
  }
  std::sort(samples.begin(), samples.end());

  for (const double percent : {1.0, 50.0, 90.0, 99.0, 99.9, 99.99}) {
    const auto rank = static_cast<std::size_t>(
        std::floor(percent / 100 * static_cast<double>(samples.size() - 1) + 0.5));
    EXPECT_NEAR(histogram.percentile_ns(percent) / samples[rank], 1, 0.001) << percent;
  }
}

TEST(Histogram, MeanAndDeviationAreExact) {
  Histogram histogram;
  for (const int us : {2, 4, 4, 4, 5, 5, 7, 9}) {
    histogram.record(microseconds(us));
  }

  EXPECT_DOUBLE_EQ(histogram.mean_ns(), 5000);
  EXPECT_NEAR(histogram.standard_deviation_ns(), 1000 * std::sqrt(32.0 / 7), 1e-6);
}

TEST(Histogram, MergedPartsEqualTheWhole) {
  Prng prng(3);
  Histogram whole;
  Histogram parts[2];
  for (int i = 0; i < 5000; ++i) {
    const Duration value = from_seconds(0.003 * prng.exponential());
    whole.record(value);
    parts[prng.below(2)].record(value);
  }

  parts[0].merge(parts[1]);

  EXPECT_EQ(parts[0].buckets(), whole.buckets());
  EXPECT_EQ(parts[0].count(), whole.count());
  EXPECT_EQ(parts[0].min_ns(), whole.min_ns());
  EXPECT_EQ(parts[0].max_ns(), whole.max_ns());
  EXPECT_NEAR(parts[0].mean_ns() / whole.mean_ns(), 1, 1e-12);
  EXPECT_NEAR(parts[0].standard_deviation_ns() / whole.standard_deviation_ns(), 1, 1e-12);
}

TEST(Histogram, EmptyAnswersZeroAndClearingEmpties) {
  Histogram histogram;
  EXPECT_EQ(histogram.percentile_ns(99), 0);
  EXPECT_EQ(histogram.mean_ns(), 0);

  histogram.record(milliseconds(3));
  histogram.clear();

  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.max_ns(), 0U);
  EXPECT_EQ(histogram.min_ns(), 0U);
}

TEST(Histogram, ExtremeValuesAreKept) {
  Histogram histogram;
  histogram.record(Duration(-5));
  histogram.record(Duration::max());

  EXPECT_EQ(histogram.min_ns(), 0U);
  EXPECT_EQ(histogram.max_ns(), static_cast<std::uint64_t>(Duration::max().count()));
  EXPECT_EQ(histogram.count(), 2U);
}

TEST(Histogram, ShareWithinALimitCountsTheLimit) {
  Histogram histogram;
  for (int ns = 1; ns <= 100; ++ns) {
    histogram.record(Duration(ns));
  }

  EXPECT_DOUBLE_EQ(histogram.share_at_or_below(Duration(90)), 0.9);
  EXPECT_DOUBLE_EQ(histogram.share_at_or_below(Duration(-1)), 0);
}

}  // namespace
}  // namespace septet::measure
