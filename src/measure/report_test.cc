#include "measure/report.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "measure/report_charts.h"

namespace septet::measure {
namespace {

using testing::HasSubstr;
using testing::Not;

ReportInput sample_input() {
  ReportInput input;
  for (const auto& [technique, replicas] :
       {std::pair{"mig", 1}, std::pair{"mig", 7}, std::pair{"time-slicing", 7}}) {
    for (const int concurrency : {1, 8}) {
      ResultRow row;
      row.context = {.technique = technique,
                     .replicas = replicas,
                     .machine = "2 cores",
                     .commit = "abc1234",
                     .model = "<densenet>",
                     .gpu = "A100",
                     .simulated = true};
      row.concurrency = concurrency;
      row.throughput = 4.25 * std::min(replicas, concurrency);
      row.throughput_half_width = 0.125;
      row.p90_us = 250'000.0 * concurrency / std::min(replicas, concurrency);
      row.p90_half_width_us = 5000;
      input.rows.push_back(row);
    }
  }
  return input;
}

TEST(ReportPage, ShowsBothChartsScalingVerdictAndEveryRow) {
  const std::string page = report_page(sample_input());

  for (const char* part :
       {"id=\"throughput\"", "id=\"throughput-log\"", "id=\"p90\"", "id=\"p90-log\"",
        "id=\"scaling\"", "grew with replicas", "All 6 measurements", "data-y=\"29.75\"",
        "29.8 \u00b1 0.1", "simulated GPU", "abc1234"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
}

TEST(ReportPage, LoadsNothingFromElsewhere) {
  const std::string page = report_page(sample_input());

  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("href=")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
  EXPECT_THAT(page, Not(HasSubstr("url(")));
}

TEST(ReportPage, EscapesWhatItIsGiven) {
  ReportInput input = sample_input();
  input.title = "<script>alert(1)</script>";
  input.notes = {"MPS was left out: \"no <GPU>\""};
  input.command = "septet compare --model '<x>'";

  const std::string page = report_page(input);

  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("<densenet>")));
  EXPECT_THAT(page, HasSubstr("MPS was left out: &quot;no &lt;GPU&gt;&quot;"));
}

TEST(ReportPage, AddsTheCostOfAMillionOnlyWithAPrice) {
  ReportInput input = sample_input();
  EXPECT_THAT(report_page(input), Not(HasSubstr("/ million")));

  input.price_per_hour = 3.0;

  // 3.00 an hour / 3600 s / 29.75 per s x 1e6 = 28.01
  EXPECT_THAT(report_page(input), HasSubstr("<td>28.01</td>"));
}

TEST(ReportPage, ComparesProfilesWhereRowsHaveSeveral) {
  ReportInput input = sample_input();
  EXPECT_THAT(report_page(input), Not(HasSubstr("Which partition size")));

  input.rows[0].context.profile = "1g.5gb";
  input.rows[2].context.profile = "2g.10gb";
  input.instances = {{"1g.5gb", 7}, {"2g.10gb", 3}};

  const std::string page = report_page(input);
  EXPECT_THAT(page, HasSubstr("Which partition size"));
  EXPECT_THAT(page, HasSubstr("id=\"profiles-1\""));
  EXPECT_THAT(page, HasSubstr("For &lt;densenet&gt;, 1g.5gb gives the most"));
  EXPECT_THAT(report_text(input, 80), HasSubstr("1g.5gb gives the most"));
}

TEST(ReportPage, StandsWithoutAnyRow) {
  EXPECT_THAT(report_page(ReportInput{}), HasSubstr("Nothing was measured"));
  EXPECT_EQ(report_text(ReportInput{}, 80), "Nothing was measured.\n");
}

TEST(ReportText, HasATableAndTheVerdictWithinTheWidth) {
  const std::string text = report_text(sample_input(), 60);

  EXPECT_THAT(text, HasSubstr("configuration     inferences/s"));
  EXPECT_THAT(text, HasSubstr("\n7 \u00d7 MIG                   29.8               8  286 ms"));
  EXPECT_THAT(text, HasSubstr("* With MIG partitions, throughput grew"));
  for (const std::string_view line : split(text.substr(text.find("* With")), '\n')) {
    EXPECT_LE(line.size(), 64U) << line;
  }
}

TEST(ReportCharts, ChooseTheUnitOfLatencyAndDrawDoubtfulPoints) {
  std::vector<ResultRow> rows = sample_input().rows;
  rows[0].errors = 2;
  rows[0].stable = false;

  const Chart chart = latency_chart(group_rows(rows), AxisScale::kLinear, AxisScale::kLinear);

  EXPECT_EQ(chart.y.unit, "ms");
  EXPECT_EQ(chart.series[0].points[0].y, 250);
  EXPECT_EQ(chart.series[0].points[0].low, 245);
  EXPECT_TRUE(chart.series[0].points[0].doubtful);
  EXPECT_EQ(chart.series[0].points[0].note, "2 failed, not stable");
}

TEST(ReportCharts, DrawScalingWithALineInProportion) {
  const Chart chart = scaling_chart(group_rows(sample_input().rows));

  ASSERT_EQ(chart.series.size(), 3U);
  EXPECT_EQ(chart.series[0].name, "MIG");
  EXPECT_EQ(chart.series[0].points.back().y, 29.75);
  EXPECT_EQ(chart.series[2].name, "proportional");
  EXPECT_EQ(chart.series[2].points.back().y, 7 * 4.25);
}

TEST(ReportCharts, HaveNoScalingWithOneReplicaCount) {
  std::vector<ResultRow> rows = sample_input().rows;
  EXPECT_TRUE(has_scaling(group_rows(rows)));

  std::erase_if(rows, [](const ResultRow& row) { return row.context.replicas == 1; });

  EXPECT_FALSE(has_scaling(group_rows(rows)));
}

}  // namespace
}  // namespace septet::measure
