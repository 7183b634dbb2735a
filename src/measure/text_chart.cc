#include "measure/text_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "measure/terminal_text.h"

namespace septet::measure {
namespace {

constexpr int kDotsAcross = 2;
constexpr int kDotsDown = 4;
constexpr int kNarrowestArea = 10;
constexpr int kNobody = -1;

struct Cell {
  std::uint8_t dots = 0;  // Braille: which of the eight
  char letter = 0;        // a measured point
  int series = kNobody;   // whose it is
};

// The bit of a dot in a Braille character (U+2800): columns 0..1, rows 0..3.
std::uint8_t braille_bit(int column, int row) {
  constexpr std::array<std::array<std::uint8_t, 4>, 2> kBits = {
      {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};
  return kBits.at(static_cast<std::size_t>(column)).at(static_cast<std::size_t>(row));
}

std::string braille(std::uint8_t dots) {
  const unsigned code = 0x2800U + dots;
  return {static_cast<char>(0xE0U | code >> 12U), static_cast<char>(0x80U | (code >> 6U & 0x3FU)),
          static_cast<char>(0x80U | (code & 0x3FU))};
}

// A colour of the terminal's 6 x 6 x 6 cube that is near a series' hue.
int ansi_colour(const ChartSeries& series) {
  constexpr std::array kStrong = {33, 208, 41, 170, 44, 203};
  constexpr int kGrey = 244;
  return series.hue < 0 ? kGrey : kStrong.at(static_cast<std::size_t>(series.hue) % kStrong.size());
}

char letter_of(std::size_t series) { return static_cast<char>('a' + series % 26); }

class TextDrawing {
 public:
  TextDrawing(const Chart& chart, const TextChartOptions& options)
      : chart_(chart), options_(options) {
    height_ = std::max(options.height, 4);
    std::tie(x_, y_) = chart_ticks(chart, 6, std::max(3, height_ / 4));
    for (const double value : y_.at) {
      label_width_ = std::max(label_width_, terminal_columns(chart_number(value)));
    }
    for (const ChartSeries& series : chart.series) {
      name_width_ = std::max(name_width_, terminal_columns(series.name) + 4);
    }
    width_ = std::max(kNarrowestArea, options.width - label_width_ - 2 - name_width_);
    cells_.resize(static_cast<std::size_t>(width_ * height_));
  }

  std::string write() {
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      draw_line(i);
    }
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      draw_points(i);
    }
    place_names();
    std::string out = heading() + '\n';
    for (int row = 0; row < height_; ++row) {
      out += row_text(row);
    }
    return out + axis_text();
  }

 private:
  static std::string with_unit(const ChartAxis& axis) {
    return axis.unit.empty() ? axis.label : axis.label + " (" + axis.unit + ")";
  }

  std::string heading() const {
    const std::string axis = with_unit(chart_.y);
    return axis.starts_with(chart_.title) ? axis : chart_.title + ": " + axis;
  }

  bool unicode() const { return options_.signs == TextSigns::kUnicode; }
  Cell& cell(int column, int row) {
    return cells_[static_cast<std::size_t>(row * width_ + column)];
  }

  // Positions in dots; row 0 is at the top.
  int dot_x(double value) const {
    return static_cast<int>(std::lround(x_.position(value) * (width_ * kDotsAcross - 1)));
  }
  int dot_y(double value) const {
    const double place = y_.scale == AxisScale::kLog && value <= 0 ? 0 : y_.position(value);
    const double up = std::clamp(place, 0.0, 1.0) * (height_ * kDotsDown - 1);
    return height_ * kDotsDown - 1 - static_cast<int>(std::lround(up));
  }

  void draw_line(std::size_t series) {
    const std::vector<ChartPoint>& points = chart_.series[series].points;
    for (std::size_t i = 1; i < points.size(); ++i) {
      draw_segment(static_cast<int>(series), points[i - 1], points[i]);
    }
  }

  void draw_segment(int series, const ChartPoint& from, const ChartPoint& to) {
    const int x0 = dot_x(from.x);
    const int y0 = dot_y(from.y);
    const int dx = dot_x(to.x) - x0;
    const int dy = dot_y(to.y) - y0;
    const int steps = std::max({std::abs(dx), std::abs(dy), 1});
    for (int step = 0; step <= steps; ++step) {
      const double part = static_cast<double>(step) / steps;
      const int x = x0 + static_cast<int>(std::lround(part * dx));
      const int y = y0 + static_cast<int>(std::lround(part * dy));
      Cell& at = cell(x / kDotsAcross, y / kDotsDown);
      at.dots = static_cast<std::uint8_t>(at.dots | braille_bit(x % kDotsAcross, y % kDotsDown));
      at.series = series;
    }
  }

  void draw_points(std::size_t series) {
    for (const ChartPoint& point : chart_.series[series].points) {
      Cell& at = cell(dot_x(point.x) / kDotsAcross, dot_y(point.y) / kDotsDown);
      at.letter = letter_of(series);
      at.series = static_cast<int>(series);
    }
  }

  // A row for every name: that of its line's end, or the nearest free one below, then above.
  void place_names() {
    name_at_.assign(static_cast<std::size_t>(height_), kNobody);
    std::vector<std::pair<int, int>> wanted;  // row, series
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      if (!chart_.series[i].points.empty()) {
        wanted.emplace_back(dot_y(chart_.series[i].points.back().y) / kDotsDown,
                            static_cast<int>(i));
      }
    }
    std::stable_sort(wanted.begin(), wanted.end());
    for (const auto& [row, series] : wanted) {
      for (int away = 0; away < 2 * height_; ++away) {
        const int place = row + (away % 2 == 0 ? away / 2 : -(away + 1) / 2);
        if (place >= 0 && place < height_ && name_at_[static_cast<std::size_t>(place)] == kNobody) {
          name_at_[static_cast<std::size_t>(place)] = series;
          break;
        }
      }
    }
  }

  std::string coloured(const std::string& text, int series) const {
    if (options_.colours == TextColours::kNone || series == kNobody || text.empty()) {
      return text;
    }
    return fmt::format("\x1b[38;5;{}m{}\x1b[0m",
                       ansi_colour(chart_.series[static_cast<std::size_t>(series)]), text);
  }

  std::string sign(const Cell& at) const {
    if (at.letter != 0) {
      return std::string(1, at.letter);
    }
    if (at.dots == 0) {
      return " ";
    }
    return unicode() ? braille(at.dots) : ".";
  }

  std::string row_text(int row) {
    std::string label;
    for (const double value : y_.at) {
      if (dot_y(value) / kDotsDown == row) {
        label = chart_number(value);
      }
    }
    const std::string tick = label.empty() ? (unicode() ? "\u2502" : "|")
                             : unicode()   ? "\u2524"
                                           : "+";
    std::string out = pad_left(label, label_width_) + ' ' + tick;
    for (int column = 0; column < width_; ++column) {
      const Cell& at = cell(column, row);
      out += coloured(sign(at), at.series);
    }
    const int series = name_at_[static_cast<std::size_t>(row)];
    if (series != kNobody) {
      const auto which = static_cast<std::size_t>(series);
      out += "  " +
             coloured(fmt::format("{} {}", letter_of(which), chart_.series[which].name), series);
    } else {
      out.erase(out.find_last_not_of(' ') + 1);
    }
    return out + '\n';
  }

  std::string axis_text() const {
    const std::string indent(static_cast<std::size_t>(label_width_ + 1), ' ');
    std::string line = indent + (unicode() ? "\u2514" : "+");
    for (int column = 0; column < width_; ++column) {
      line += unicode() ? "\u2500" : "-";
    }
    std::string labels;
    for (const double value : x_.at) {
      const std::string label = chart_number(value);
      const int middle = label_width_ + 2 + dot_x(value) / kDotsAcross;
      const int begin = middle - static_cast<int>(label.size()) / 2;
      if (begin > static_cast<int>(labels.size())) {
        labels.resize(static_cast<std::size_t>(begin), ' ');
        labels += label;
      }
    }
    return line + '\n' + labels + '\n' + indent + ' ' + with_unit(chart_.x) + '\n';
  }

  const Chart& chart_;
  const TextChartOptions& options_;
  AxisTicks x_;
  AxisTicks y_;
  int width_ = 0;
  int height_ = 0;
  int label_width_ = 0;
  int name_width_ = 0;
  std::vector<Cell> cells_;
  std::vector<int> name_at_;  // series by row
};

}  // namespace

std::string text_chart(const Chart& chart, const TextChartOptions& options) {
  return TextDrawing(chart, options).write();
}

}  // namespace septet::measure
