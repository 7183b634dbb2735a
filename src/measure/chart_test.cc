#include "measure/chart.h"

#include <gmock/gmock.h>

#include <cmath>

namespace septet::measure {
namespace {

using testing::DoubleEq;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

TEST(ChartTicks, AreRoundAndEncloseTheValues) {
  const AxisTicks ticks = choose_ticks(1, 29.2, AxisScale::kLinear, 6);

  EXPECT_THAT(ticks.at, ElementsAre(0, 5, 10, 15, 20, 25, 30));
  EXPECT_EQ(ticks.begin, 0);
  EXPECT_EQ(ticks.end, 30);
  EXPECT_EQ(ticks.position(15), 0.5);
}

TEST(ChartTicks, BeginAtZeroOnlyWhenTheValuesComeNear) {
  EXPECT_EQ(choose_ticks(30, 100, AxisScale::kLinear, 5).begin, 0);
  EXPECT_EQ(choose_ticks(95, 100, AxisScale::kLinear, 5).begin, 95);
}

TEST(ChartTicks, HandleOneValueZeroAndFractions) {
  const AxisTicks one = choose_ticks(7, 7, AxisScale::kLinear, 5);
  const AxisTicks zero = choose_ticks(0, 0, AxisScale::kLinear, 5);
  const AxisTicks small = choose_ticks(0.001, 0.0042, AxisScale::kLinear, 5);

  EXPECT_LT(one.begin, 7);
  EXPECT_GT(one.end, 7);
  EXPECT_LT(zero.begin, zero.end);
  EXPECT_THAT(small.at, Pointwise(DoubleNear(1e-12),
                                  std::vector<double>{0, 0.001, 0.002, 0.003, 0.004, 0.005}));
}

TEST(ChartTicks, OnALogAxisAreOneTwoFive) {
  const AxisTicks ticks = choose_ticks(1, 100, AxisScale::kLog, 8);

  EXPECT_THAT(ticks.at, ElementsAre(1, 2, 5, 10, 20, 50, 100));
  EXPECT_THAT(ticks.position(10), DoubleEq(0.5));
}

TEST(ChartTicks, OnALogAxisKeepOnlyPowersOfTenWhenThereAreMany) {
  const AxisTicks ticks = choose_ticks(0.003, 40'000, AxisScale::kLog, 6);

  EXPECT_THAT(ticks.at, Pointwise(DoubleNear(1e-6),
                                  std::vector<double>{0.01, 0.1, 1., 10., 100., 1000., 10000.}));
  EXPECT_LE(ticks.begin, 0.003);
  EXPECT_GE(ticks.end, 40'000);
}

TEST(ChartTicks, FallBackToLinearWhenAValueHasNoLogarithm) {
  EXPECT_EQ(choose_ticks(0, 10, AxisScale::kLog, 5).scale, AxisScale::kLinear);
}

TEST(ChartTicks, CoverBandsButNotBelowZeroOnALogAxis) {
  Chart chart;
  chart.y.scale = AxisScale::kLog;
  chart.series.push_back({.points = {{.x = 1, .y = 10, .low = -5, .high = 300}}});

  const auto [x, y] = chart_ticks(chart, 5, 5);

  EXPECT_EQ(y.scale, AxisScale::kLog);
  EXPECT_LE(y.begin, 10);
  EXPECT_GE(y.end, 300);
}

TEST(ChartTicks, AreWholeWhereTheValuesAre) {
  Chart chart;
  chart.x.whole = true;
  chart.series.push_back({.points = {{.x = 1, .y = 1}, {.x = 2, .y = 1}}});

  EXPECT_THAT(chart_ticks(chart, 8, 5).first.at, ElementsAre(1, 2));
}

TEST(ChartTicks, EndTheXAxisAtTheLastPoint) {
  Chart chart;
  chart.series.push_back({.points = {{.x = 1, .y = 1}, {.x = 16, .y = 1}}});

  const AxisTicks x = chart_ticks(chart, 4, 5).first;

  EXPECT_EQ(x.end, 16);
  EXPECT_THAT(x.at, ElementsAre(0, 5, 10, 15));
}

TEST(ChartTicks, ExistForAChartWithoutPoints) {
  const auto [x, y] = chart_ticks(Chart{}, 5, 5);

  EXPECT_LT(x.begin, x.end);
  EXPECT_LT(y.begin, y.end);
}

TEST(ChartNumber, HasThreeSignificantDigitsAndGroupsThousands) {
  EXPECT_EQ(chart_number(0), "0");
  EXPECT_EQ(chart_number(0.25), "0.25");
  EXPECT_EQ(chart_number(1.5), "1.5");
  EXPECT_EQ(chart_number(29.249), "29.2");
  EXPECT_EQ(chart_number(999.6), "1,000");
  EXPECT_EQ(chart_number(12'345), "12,345");
  EXPECT_EQ(chart_number(1'234'567), "1,234,567");
  EXPECT_EQ(chart_number(-1234), "-1,234");
  EXPECT_EQ(chart_number(0.0001234), "0.000123");
}

}  // namespace
}  // namespace septet::measure
