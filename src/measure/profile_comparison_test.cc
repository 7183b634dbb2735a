#include "measure/profile_comparison.h"

#include <gmock/gmock.h>

namespace septet::measure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ResultRow cell(const std::string& profile, int replicas, int concurrency, double throughput,
               double p90_ms) {
  ResultRow row;
  row.context.technique = "mig";
  row.context.model = "bert";
  row.context.profile = profile;
  row.context.replicas = replicas;
  row.concurrency = concurrency;
  row.throughput = throughput;
  row.throughput_half_width = throughput * 0.01;
  row.p90_us = p90_ms * 1000;
  return row;
}

// Small partitions give more together, large ones answer sooner.
std::vector<ResultRow> sample_rows() {
  return {cell("1g.5gb", 7, 7, 70, 110), cell("1g.5gb", 7, 14, 72, 220),
          cell("3g.20gb", 2, 2, 50, 42), cell("3g.20gb", 2, 4, 52, 80),
          cell("7g.40gb", 1, 1, 40, 26), cell("7g.40gb", 1, 2, 44, 50)};
}

ProfileQuestion question_with(std::optional<double> p90_limit_us) {
  return {.instances = {{"1g.5gb", 7}, {"3g.20gb", 2}, {"7g.40gb", 1}},
          .p90_limit_us = p90_limit_us,
          .price_per_hour = 3.6};
}

std::vector<std::string> profiles_of(const std::vector<ProfileResult>& results) {
  std::vector<std::string> profiles;
  for (const ProfileResult& result : results) {
    profiles.push_back(result.profile + (result.within_limit ? "" : " too slow"));
  }
  return profiles;
}

TEST(CompareProfiles, RanksByAFullGpusThroughput) {
  const auto results = compare_profiles(sample_rows(), question_with(std::nullopt));

  EXPECT_THAT(profiles_of(results), ElementsAre("1g.5gb", "3g.20gb", "7g.40gb"));
  EXPECT_EQ(results[0].gpu_throughput, 72);
  EXPECT_FALSE(results[0].scaled_up);
  // 3.60 an hour = 0.001 a second; 72 a second for that: 13.89 a million.
  EXPECT_NEAR(results[0].price_of_million.value(), 13.889, 0.001);
}

TEST(CompareProfiles, TakesTheBestLevelThatKeepsTheObjective) {
  const auto results = compare_profiles(sample_rows(), question_with(60e3));

  EXPECT_THAT(profiles_of(results), ElementsAre("3g.20gb", "7g.40gb", "1g.5gb too slow"));
  EXPECT_EQ(results[0].row.concurrency, 2);
  EXPECT_EQ(results[2].row.p90_us, 110e3);
}

TEST(CompareProfiles, ScalesUpWhatWasMeasuredOnFewerPartitionsAndMarksIt) {
  const auto results =
      compare_profiles({cell("1g.5gb", 1, 1, 10, 110)}, question_with(std::nullopt));

  EXPECT_EQ(results[0].gpu_throughput, 70);
  EXPECT_TRUE(results[0].scaled_up);
  EXPECT_THAT(profile_verdict(results, question_with(std::nullopt)).back().text,
              HasSubstr("scaled up"));
}

TEST(CompareProfiles, LeavesOutRowsWithoutAProfile) {
  EXPECT_THAT(compare_profiles({cell("", 7, 7, 70, 110)}, question_with(std::nullopt)), IsEmpty());
  EXPECT_FALSE(has_profiles({cell("1g.5gb", 7, 7, 70, 110)}));
  EXPECT_TRUE(has_profiles(sample_rows()));
}

std::string first_words(const std::vector<ResultRow>& rows, std::optional<double> limit) {
  const ProfileQuestion question = question_with(limit);
  return profile_verdict(compare_profiles(rows, question), question).front().text;
}

TEST(ProfileVerdict, NamesTheBestProfileForTheObjective) {
  EXPECT_EQ(
      first_words(sample_rows(), 60e3),
      "For bert with p90 within 60 ms, 3g.20gb gives the most: 50.0 \u00b1 0.5 inferences/s a "
      "GPU, p90 42 ms, 13.6 % more than 7g.40gb (44.0 \u00b1 0.4 inferences/s a GPU, p90 50 "
      "ms).");
}

TEST(ProfileVerdict, ClaimsNoMoreThanTheNumbersAllow) {
  EXPECT_THAT(first_words({cell("1g.5gb", 7, 7, 50.2, 50), cell("3g.20gb", 2, 2, 50, 42)}, 60e3),
              HasSubstr("cannot be told apart"));
  EXPECT_THAT(first_words(sample_rows(), 30e3), HasSubstr("only 7g.40gb will do"));
  EXPECT_THAT(first_words(sample_rows(), 10e3),
              HasSubstr("no profile keeps p90 within 10 ms; the nearest is 7g.40gb (26 ms)"));
}

TEST(ProfileChart, DrawsAFullGpusThroughputAgainstLatency) {
  const Chart chart = profile_chart(sample_rows(), "bert", question_with(std::nullopt));

  ASSERT_EQ(chart.series.size(), 3U);
  EXPECT_EQ(chart.series[1].name, "3g.20gb");
  EXPECT_EQ(chart.series[1].points[0].x, 42);
  EXPECT_EQ(chart.series[1].points[0].y, 50);
}

}  // namespace
}  // namespace septet::measure
