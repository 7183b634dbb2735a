// Chart: what a line chart shows, before anything is drawn: axes, ticks, series, points.
//
// Drawn as SVG (svg_chart.h) and in a terminal (text_chart.h). Values, any thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace septet::measure {

enum class AxisScale { kLinear, kLog };

struct ChartAxis {
  std::string label{};
  std::string unit{};  // behind values, e.g. "ms"; may be empty
  AxisScale scale = AxisScale::kLinear;
  bool whole = false;  // its values are whole numbers, so its labels are
};

struct ChartPoint {
  double x = 0;
  double y = 0;
  std::optional<double> low{};  // the band of confidence, if known
  std::optional<double> high{};
  bool doubtful = false;  // drawn hollow: the measurement was not stable or had failures
  std::string note{};     // shown with the value, e.g. "2 failed"
};

enum class LineStyle { kSolid, kDashed };

// The hue of lines that are no measurement: grey.
inline constexpr int kNeutralHue = -1;

struct ChartSeries {
  std::string name{};
  std::vector<ChartPoint> points{};  // ascending in x
  int hue = 0;                       // series of one kind share a hue...
  double shade = 0.5;                // ...and differ in shade: 0 = faint, 1 = strong
  LineStyle style = LineStyle::kSolid;
};

struct Chart {
  std::string id{};  // unique in a page; letters, digits, '-'
  std::string title{};
  std::string subtitle{};
  ChartAxis x{};
  ChartAxis y{};
  std::vector<ChartSeries> series{};
};

// Where an axis begins and ends, and its labelled places.
struct AxisTicks {
  double begin = 0;
  double end = 1;
  AxisScale scale = AxisScale::kLinear;
  std::vector<double> at{};

  // 0 at begin, 1 at end; values outside lie outside. On a log axis the value must be > 0.
  double position(double value) const;
};

// Round places (1, 2 or 5 times a power of ten) that enclose the values; at most about `wanted`.
// A linear axis whose values reach down to less than a third of their maximum begins at 0. A log
// axis needs values > 0 and falls back to linear without them.
AxisTicks choose_ticks(double smallest, double largest, AxisScale scale, int wanted);

// Both axes' ticks, around every point and band of the chart. The x axis ends at the last point.
std::pair<AxisTicks, AxisTicks> chart_ticks(const Chart& chart, int wanted_x, int wanted_y);

// A number as a label: three significant digits, thousands grouped: "0.25", "1.5", "12,300".
std::string chart_number(double value);

}  // namespace septet::measure
