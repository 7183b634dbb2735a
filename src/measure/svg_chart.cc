#include "measure/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

namespace septet::measure {
namespace {

constexpr double kWidth = 640;
constexpr double kHeight = 380;
constexpr double kLeft = 64;
constexpr double kRight = 152;  // room for the names
constexpr double kBottom = 52;
constexpr double kLabelGap = 17;  // between the names' base lines
constexpr int kWantedX = 8;
constexpr int kWantedY = 6;

// The middle dot where a name belongs to a line.
struct EndLabel {
  const ChartSeries* series = nullptr;
  double line_y = 0;   // where the line ends
  double label_y = 0;  // where the name stands
};

std::string series_class(const ChartSeries& series) {
  const std::string hue = series.hue < 0 ? "grey" : fmt::format("{}", series.hue);
  return fmt::format("{}-{}", hue, std::lround(series.shade * 100));
}

// Draws one chart; appends to one text.
class SvgWriter {
 public:
  SvgWriter(const Chart& chart, SvgUse use) : chart_(chart), use_(use) {
    std::tie(x_, y_) = chart_ticks(chart, kWantedX, kWantedY);
    top_ = use == SvgUse::kFile ? 76 : 26;
    height_ = kHeight + top_ - 26;
  }

  std::string write() {
    open();
    draw_axes();
    for (const ChartSeries& series : chart_.series) {
      draw_series(series);
    }
    draw_names();
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
  }

  double x_of(double value) const { return kLeft + x_.position(value) * (kWidth - kLeft - kRight); }
  double y_of(double value) const {
    const double place = y_.scale == AxisScale::kLog && value <= 0 ? 0 : y_.position(value);
    return height_ - kBottom - std::clamp(place, 0.0, 1.0) * (height_ - kBottom - top_);
  }

  void open() {
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" class="chart" id="{}" viewBox="0 0 {} {}" )"
        R"(role="img" aria-label="{}: {} against {}" data-xname="{}" data-unit="{}">)"
        "\n",
        chart_.id, kWidth, height_, escape_markup(chart_.title), escape_markup(chart_.y.label),
        escape_markup(chart_.x.label), escape_markup(first_word(chart_.x.label)),
        escape_markup(chart_.y.unit));
    if (use_ == SvgUse::kFile) {
      add("<style>\n{}</style>\n", file_style());
      add(R"(<rect class="page" width="{}" height="{}"/>)", kWidth, height_);
      add(R"(<text class="title" x="16" y="28">{}</text>)", escape_markup(chart_.title));
      add(R"(<text class="subtitle" x="16" y="48">{}</text>)", escape_markup(chart_.subtitle));
      out_ += '\n';
    }
  }

  std::string file_style() const {
    return fmt::format(
        ":root{{--page:#ffffff;--ink:#1c1f26;--quiet:#626a78;--grid:#e3e6eb;{}}}\n"
        "@media(prefers-color-scheme:dark){{:root{{--page:#16181d;--ink:#e8eaee;--quiet:#9aa2b1;"
        "--grid:#2c3039;{}}}}}\n"
        "text{{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--ink)}}\n"
        ".page{{fill:var(--page)}}.title{{font-size:18px;font-weight:600}}\n"
        ".subtitle,.tick,.axis{{fill:var(--quiet)}}\n"
        ".grid{{stroke:var(--grid)}}.line{{fill:none;stroke-width:2.2;stroke-linejoin:round}}\n"
        ".band{{opacity:.16}}.leader{{fill:none;opacity:.6}}.doubtful{{fill:var(--page)}}\n",
        series_colour_variables(chart_, Theme::kLight),
        series_colour_variables(chart_, Theme::kDark));
  }

  void draw_axes() {
    const double bottom = height_ - kBottom;
    for (const double value : y_.at) {
      add(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", kLeft, kWidth - kRight,
          y_of(value), y_of(value));
      add(R"(<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>)", kLeft - 8,
          y_of(value) + 4.5, chart_number(value));
    }
    for (const double value : x_.at) {
      add(R"(<line class="grid" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>)", x_of(value),
          x_of(value), bottom, bottom + 5);
      add(R"(<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", x_of(value),
          bottom + 20, chart_number(value));
    }
    add(R"(<text class="axis" x="{:.1f}" y="{}" text-anchor="middle">{}</text>)",
        (kLeft + kWidth - kRight) / 2, height_ - 10, escape_markup(with_unit(chart_.x)));
    add(R"(<text class="axis" x="16" y="{}">{}</text>)", top_ - 10,
        escape_markup(with_unit(chart_.y)));
    add(R"(<line class="guide" style="display:none" y1="{}" y2="{}"/>)", top_, bottom);
    out_ += '\n';
  }

  static std::string first_word(const std::string& label) {
    return label.substr(0, label.find(':'));
  }

  static std::string with_unit(const ChartAxis& axis) {
    return axis.unit.empty() ? axis.label : axis.label + " (" + axis.unit + ")";
  }

  void draw_series(const ChartSeries& series) {
    if (series.points.empty()) {
      return;
    }
    const std::string colour = "var(--series-" + series_class(series) + ")";
    add(R"(<g class="series" data-name="{}">)", escape_markup(series.name));
    draw_band(series, colour);
    std::string path;
    for (const ChartPoint& point : series.points) {
      path +=
          fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_of(point.x), y_of(point.y));
    }
    add(R"(<path class="line" style="stroke:{}" d="{}"{}/>)", colour, path,
        series.style == LineStyle::kDashed ? R"( stroke-dasharray="6 4")" : "");
    for (const ChartPoint& point : series.points) {
      draw_point(point, colour);
    }
    out_ += "</g>\n";
  }

  void draw_band(const ChartSeries& series, const std::string& colour) {
    std::string upper;
    std::string lower;
    for (const ChartPoint& point : series.points) {
      upper += fmt::format("{}{:.1f} {:.1f}", upper.empty() ? "M" : "L", x_of(point.x),
                           y_of(point.high.value_or(point.y)));
      lower.insert(0,
                   fmt::format("L{:.1f} {:.1f}", x_of(point.x), y_of(point.low.value_or(point.y))));
    }
    const bool known = std::any_of(series.points.begin(), series.points.end(),
                                   [](const ChartPoint& point) { return point.low || point.high; });
    if (known) {
      add(R"(<path class="band" style="fill:{}" d="{}{}Z"/>)", colour, upper, lower);
    }
  }

  void draw_point(const ChartPoint& point, const std::string& colour) {
    const char* shape = point.doubtful ? "point doubtful" : "point";
    const std::string fill = point.doubtful ? "" : ";fill:" + colour;
    add(R"(<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="3.2" style="stroke:{};stroke-width:1.6{}" )"
        R"(data-x="{}" data-y="{}")",
        shape, x_of(point.x), y_of(point.y), colour, fill, point.x, point.y);
    if (point.low && point.high) {
      add(R"( data-low="{}" data-high="{}")", *point.low, *point.high);
    }
    if (!point.note.empty()) {
      add(R"( data-note="{}")", escape_markup(point.note));
    }
    out_ += "/>";
  }

  void draw_names() {
    std::vector<EndLabel> labels;
    for (const ChartSeries& series : chart_.series) {
      if (!series.points.empty()) {
        const double y = y_of(series.points.back().y);
        labels.push_back({&series, y, y});
      }
    }
    std::stable_sort(labels.begin(), labels.end(),
                     [](const EndLabel& a, const EndLabel& b) { return a.line_y < b.line_y; });
    spread(labels);
    for (const EndLabel& label : labels) {
      const std::string colour = "var(--series-" + series_class(*label.series) + ")";
      const double end = x_of(label.series->points.back().x);
      const double text_x = kWidth - kRight + 22;
      add(R"(<path class="leader" style="stroke:{}" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>)", colour,
          end + 6, label.line_y, text_x - 4, label.label_y);
      add(R"(<text class="name" style="fill:{}" x="{:.1f}" y="{:.1f}">{}</text>)", colour, text_x,
          label.label_y + 4.5, escape_markup(label.series->name));
      out_ += '\n';
    }
  }

  // Moves names apart, downwards first, then up again where the last ones left the chart.
  void spread(std::vector<EndLabel>& labels) const {
    const double bottom = height_ - kBottom;
    const double wanted = labels.empty() ? 0 : (bottom - top_) / static_cast<double>(labels.size());
    const double gap = std::min(kLabelGap, wanted);
    double limit = top_;
    for (EndLabel& label : labels) {
      label.label_y = std::max(label.label_y, limit);
      limit = label.label_y + gap;
    }
    limit = bottom;
    for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
      label->label_y = std::min(label->label_y, limit);
      limit = label->label_y - gap;
    }
  }

  const Chart& chart_;
  SvgUse use_;
  AxisTicks x_;
  AxisTicks y_;
  double top_ = 0;
  double height_ = 0;
  std::string out_;
};

}  // namespace

std::string svg_chart(const Chart& chart, SvgUse use) { return SvgWriter(chart, use).write(); }

std::string series_colour_variables(const Chart& chart, Theme theme) {
  std::string variables;
  std::set<std::string> seen;
  for (const ChartSeries& series : chart.series) {
    const std::string name = series_class(series);
    if (seen.insert(name).second) {
      variables +=
          fmt::format("--series-{}:{};", name, series_colour(series.hue, series.shade, theme));
    }
  }
  return variables;
}

std::string escape_markup(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace septet::measure
