#include "measure/experiment.h"

#include <gmock/gmock.h>

#include <cmath>

namespace septet::measure {
namespace {

ResultRow row_of(const std::string& technique, int replicas, int concurrency, double throughput) {
  ResultRow row;
  row.context.technique = technique;
  row.context.replicas = replicas;
  row.concurrency = concurrency;
  row.throughput = throughput;
  return row;
}

TEST(Experiment, GroupsByTechniqueAndReplicasPartitionsFirst) {
  const auto groups = group_rows({row_of("a-technique", 7, 1, 5), row_of("mig", 7, 2, 8),
                                  row_of("mig", 1, 1, 4), row_of("mig", 7, 1, 4)});

  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(configuration_name(groups[0].configuration), "1 \u00d7 MIG");
  EXPECT_EQ(configuration_name(groups[1].configuration), "7 \u00d7 MIG");
  EXPECT_EQ(configuration_name(groups[2].configuration), "7 \u00d7 a-technique");
  ASSERT_EQ(groups[1].rows.size(), 2U);
  EXPECT_EQ(groups[1].rows[0].concurrency, 1);
}

TEST(Experiment, KeepsTheLastOfTwoRowsForOneCell) {
  const auto groups = group_rows({row_of("mig", 1, 1, 4), row_of("mig", 1, 1, 5)});

  ASSERT_EQ(groups.size(), 1U);
  ASSERT_EQ(groups[0].rows.size(), 1U);
  EXPECT_EQ(groups[0].rows[0].throughput, 5);
}

TEST(Experiment, NamesRunAndModelOnlyWhenThereAreSeveral) {
  ResultRow first = row_of("mig", 1, 1, 4);
  first.context.run = "monday";
  first.context.model = "densenet";
  ResultRow second = first;
  second.context.run = "tuesday";

  EXPECT_EQ(configuration_name(group_rows({first})[0].configuration), "1 \u00d7 MIG");
  EXPECT_EQ(configuration_name(group_rows({first, second})[1].configuration),
            "tuesday, 1 \u00d7 MIG");
}

TEST(Experiment, KeepsRunsInOrderOfAppearanceAndCallsForeignOnesByName) {
  ResultRow zulu = row_of("", 0, 1, 4);
  zulu.context.run = "zulu";
  ResultRow alpha = zulu;
  alpha.context.run = "alpha";

  const auto groups = group_rows({zulu, alpha});

  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(configuration_name(groups[0].configuration), "zulu");
  EXPECT_EQ(configuration_name(groups[1].configuration), "alpha");
  EXPECT_EQ(configuration_name(group_rows({zulu})[0].configuration), "zulu");
}

TEST(Experiment, IsAtItsBestWhereMoreRequestsInFlightOnlyWait) {
  const auto groups =
      group_rows({row_of("mig", 7, 1, 4), row_of("mig", 7, 7, 29.2), row_of("mig", 7, 16, 29.9)});

  EXPECT_EQ(groups[0].best().concurrency, 7);
  EXPECT_EQ(groups[0].at(16)->throughput, 29.9);
  EXPECT_EQ(groups[0].at(2), nullptr);
}

TEST(Experiment, WritesLatenciesInAUnitThatSuits) {
  EXPECT_EQ(latency_text(812), "812 \u00b5s");
  EXPECT_EQ(latency_text(3991), "3.99 ms");
  EXPECT_EQ(latency_text(272'123), "272 ms");
  EXPECT_EQ(latency_text(4'120'000), "4.12 s");
  EXPECT_EQ(latency_text(std::nan("")), "-");
}

TEST(Experiment, WritesHalfWidthsWithTheDecimalsTheyAllow) {
  EXPECT_EQ(with_half_width(29.247, 0.58), "29.2 \u00b1 0.6");
  EXPECT_EQ(with_half_width(4.1119, 0.0821), "4.11 \u00b1 0.08");
  EXPECT_EQ(with_half_width(29.247, std::nullopt), "29.2");
  EXPECT_EQ(with_half_width(1234.4, 56.2), "1234 \u00b1 56");
  EXPECT_EQ(with_half_width(10, 0.0), "10 \u00b1 0");
}

}  // namespace
}  // namespace septet::measure
