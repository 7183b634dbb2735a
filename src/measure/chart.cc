#include "measure/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace septet::measure {
namespace {

constexpr double kRounding = 1e-9;  // of a step: sums of steps are not exact

double power_of_ten(double exponent) { return std::pow(10.0, exponent); }

// The smallest of 1, 2, 5, 10 times a power of ten that is not below the value.
double round_step_at_least(double value) {
  const double base = power_of_ten(std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * base >= value * (1 - kRounding)) {
      return factor * base;
    }
  }
  return 10 * base;
}

AxisTicks linear_ticks(double smallest, double largest, int wanted) {
  if (smallest >= 0 && smallest < largest / 3) {
    smallest = 0;
  }
  if (largest <= smallest) {
    const double margin = largest == 0 ? 1 : std::abs(largest) / 2;
    smallest -= smallest == 0 ? 0 : margin;
    largest += margin;
  }
  const double step = round_step_at_least((largest - smallest) / std::max(wanted, 1));
  const double first = std::floor(smallest / step + kRounding);
  const double last = std::ceil(largest / step - kRounding);
  AxisTicks ticks{.begin = first * step, .end = last * step, .at = {}};
  for (double i = first; i <= last; ++i) {
    ticks.at.push_back(i * step);
  }
  return ticks;
}

AxisTicks log_ticks(double smallest, double largest, int wanted) {
  const std::vector<double> factors = {1, 2, 5};
  AxisTicks ticks{.scale = AxisScale::kLog, .at = {}};
  const double first = std::floor(std::log10(smallest) + kRounding);
  const double last = std::ceil(std::log10(largest) - kRounding);
  for (double exponent = first; exponent <= last; ++exponent) {
    for (const double factor : factors) {
      ticks.at.push_back(factor * power_of_ten(exponent));
    }
  }
  // Enclose the values as closely as the round numbers allow.
  while (ticks.at.size() > 2 && ticks.at[1] <= smallest * (1 + kRounding)) {
    ticks.at.erase(ticks.at.begin());
  }
  while (ticks.at.size() > 2 && ticks.at[ticks.at.size() - 2] >= largest * (1 - kRounding)) {
    ticks.at.pop_back();
  }
  ticks.begin = ticks.at.front();
  ticks.end = ticks.at.back();
  if (static_cast<int>(ticks.at.size()) > 2 * wanted) {
    std::erase_if(ticks.at, [](double value) {
      const double exponent = std::log10(value);
      return std::abs(exponent - std::round(exponent)) > kRounding;
    });
  }
  return ticks;
}

struct Extent {
  double smallest = INFINITY;
  double largest = -INFINITY;

  void include(double value) {
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
  }
};

AxisTicks ticks_of(const Extent& extent, const ChartAxis& axis, int wanted) {
  if (extent.smallest > extent.largest) {
    return choose_ticks(0, 1, AxisScale::kLinear, wanted);  // no point at all
  }
  AxisTicks ticks = choose_ticks(extent.smallest, extent.largest, axis.scale, wanted);
  if (axis.whole) {
    std::erase_if(ticks.at,
                  [](double value) { return std::abs(value - std::round(value)) > kRounding; });
  }
  return ticks;
}

}  // namespace

double AxisTicks::position(double value) const {
  if (scale == AxisScale::kLog) {
    return std::log(value / begin) / std::log(end / begin);
  }
  return (value - begin) / (end - begin);
}

AxisTicks choose_ticks(double smallest, double largest, AxisScale scale, int wanted) {
  if (scale == AxisScale::kLog && smallest > 0) {
    return log_ticks(smallest, largest, wanted);
  }
  return linear_ticks(smallest, largest, wanted);
}

std::pair<AxisTicks, AxisTicks> chart_ticks(const Chart& chart, int wanted_x, int wanted_y) {
  Extent x;
  Extent y;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      x.include(point.x);
      y.include(point.y);
      y.include(point.high.value_or(point.y));
      const double low = point.low.value_or(point.y);
      if (chart.y.scale == AxisScale::kLinear || low > 0) {
        y.include(low);
      }
    }
  }
  AxisTicks across = ticks_of(x, chart.x, wanted_x);
  if (x.largest > across.begin) {  // lines run to the right edge, whatever the last label is
    across.end = x.largest;
    std::erase_if(across.at, [&](double value) { return value > x.largest * (1 + kRounding); });
  }
  return {across, ticks_of(y, chart.y, wanted_y)};
}

std::string chart_number(double value) {
  if (value == 0) {
    return "0";
  }
  const double magnitude = std::floor(std::log10(std::abs(value)) + kRounding);
  if (magnitude < -4) {
    return fmt::format("{:.2g}", value);
  }
  const int decimals = std::clamp(2 - static_cast<int>(magnitude), 0, 6);
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') {
      text.pop_back();
    }
  }
  const std::size_t whole = std::min(text.find('.'), text.size());
  const std::size_t sign = text.front() == '-' ? 1 : 0;
  for (std::size_t place = whole; place > sign + 3; place -= 3) {
    text.insert(place - 3, ",");
  }
  return text;
}

}  // namespace septet::measure
