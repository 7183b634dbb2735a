#include "measure/report_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

namespace septet::measure {
namespace {

using FamilyKey = std::tuple<std::string, std::string, std::string, std::string>;

FamilyKey family_key(const Configuration& configuration) {
  return {configuration.run, configuration.model, configuration.technique, configuration.profile};
}

// Which hue a family of configurations has, and which shade a replica count: the more, the
// stronger.
class Palette {
 public:
  explicit Palette(const std::vector<ConfigurationRows>& groups) {
    for (const ConfigurationRows& group : groups) {
      const FamilyKey key = family_key(group.configuration);
      hues_.try_emplace(key, static_cast<int>(hues_.size()));
      counts_[key].push_back(group.configuration.replicas);
    }
  }

  void paint(const Configuration& configuration, ChartSeries& series) const {
    const FamilyKey key = family_key(configuration);
    const std::vector<int>& counts = counts_.at(key);
    const auto place = std::find(counts.begin(), counts.end(), configuration.replicas);
    series.hue = hues_.at(key);
    series.shade = counts.size() == 1 ? 0.7
                                      : static_cast<double>(place - counts.begin()) /
                                            static_cast<double>(counts.size() - 1);
    series.style = is_partitioned(configuration.technique) ? LineStyle::kSolid : LineStyle::kDashed;
  }

 private:
  std::map<FamilyKey, int> hues_;
  std::map<FamilyKey, std::vector<int>> counts_;
};

std::string point_note(const ResultRow& row) {
  std::string note;
  if (row.errors > 0) {
    note = fmt::format("{} failed", row.errors);
  }
  if (!row.stable) {
    note += note.empty() ? "not stable" : ", not stable";
  }
  return note;
}

// A point whose value and half width are given in the chart's unit.
ChartPoint point_of(const ResultRow& row, double value, const std::optional<double>& half_width) {
  ChartPoint point{.x = static_cast<double>(row.concurrency), .y = value};
  if (half_width) {
    point.low = std::max(0.0, value - *half_width);
    point.high = value + *half_width;
  }
  point.doubtful = !row.stable || row.errors > 0;
  point.note = point_note(row);
  return point;
}

void add_lines(const std::vector<ConfigurationRows>& groups, Chart& chart,
               const std::function<ChartPoint(const ResultRow&)>& point) {
  const Palette palette(groups);
  for (const ConfigurationRows& group : groups) {
    ChartSeries series{.name = configuration_name(group.configuration)};
    palette.paint(group.configuration, series);
    for (const ResultRow& row : group.rows) {
      const ChartPoint drawn = point(row);
      if (std::isfinite(drawn.y)) {
        series.points.push_back(drawn);
      }
    }
    chart.series.push_back(std::move(series));
  }
}

// What the level counts: all rows of a report count the same.
ChartAxis level_axis(const std::vector<ConfigurationRows>& groups, AxisScale scale) {
  const bool by_rate =
      !groups.empty() && groups.front().rows.front().load != LoadMode::kConcurrency;
  return {.label =
              by_rate ? "request rate: requests due per second" : "concurrency: requests in flight",
          .scale = scale,
          .whole = true};
}

std::string scale_suffix(AxisScale scale) { return scale == AxisScale::kLog ? "-log" : ""; }

}  // namespace

Chart throughput_chart(const std::vector<ConfigurationRows>& groups, AxisScale x_scale) {
  Chart chart{.id = "throughput" + scale_suffix(x_scale),
              .title = "Throughput",
              .subtitle = "Higher is better",
              .x = level_axis(groups, x_scale),
              .y = {.label = "inferences per second"}};
  add_lines(groups, chart, [](const ResultRow& row) {
    return point_of(row, row.throughput, row.throughput_half_width);
  });
  return chart;
}

Chart latency_chart(const std::vector<ConfigurationRows>& groups, AxisScale x_scale,
                    AxisScale y_scale) {
  double largest = 0;
  for (const ConfigurationRows& group : groups) {
    for (const ResultRow& row : group.rows) {
      largest = std::isnan(row.p90_us) ? largest : std::max(largest, row.p90_us);
    }
  }
  const bool in_seconds = largest >= 10e6;
  const bool in_milliseconds = largest >= 2e3;
  const double unit_us = in_seconds ? 1e6 : in_milliseconds ? 1e3 : 1;
  Chart chart{.id = "p90" + scale_suffix(x_scale),
              .title = "p90 latency",
              .subtitle = "Nine of ten requests are answered within this time; lower is better",
              .x = level_axis(groups, x_scale),
              .y = {.label = "p90 latency",
                    .unit = in_seconds        ? "s"
                            : in_milliseconds ? "ms"
                                              : "\u00b5s",
                    .scale = y_scale}};
  add_lines(groups, chart, [unit_us](const ResultRow& row) {
    std::optional<double> half_width = row.p90_half_width_us;
    if (half_width) {
      *half_width /= unit_us;
    }
    return point_of(row, row.p90_us / unit_us, half_width);
  });
  return chart;
}

bool has_scaling(const std::vector<ConfigurationRows>& groups) {
  return std::adjacent_find(groups.begin(), groups.end(),
                            [](const ConfigurationRows& a, const ConfigurationRows& b) {
                              return family_key(a.configuration) == family_key(b.configuration);
                            }) != groups.end();
}

Chart scaling_chart(const std::vector<ConfigurationRows>& groups) {
  Chart chart{.id = "scaling",
              .title = "Scaling by replicas",
              .subtitle = "Best throughput of each configuration",
              .x = {.label = "replicas", .whole = true},
              .y = {.label = "inferences per second"}};
  std::map<FamilyKey, std::size_t> places;
  int most_replicas = 0;
  for (const ConfigurationRows& group : groups) {
    const Configuration& configuration = group.configuration;
    const auto [place, added] = places.try_emplace(family_key(configuration), chart.series.size());
    if (added) {
      ChartSeries series{.name = technique_label(configuration.technique),
                         .hue = static_cast<int>(places.size()) - 1,
                         .shade = 0.7};
      series.name = (configuration.run.empty() ? "" : configuration.run + ", ") +
                    (configuration.model.empty() ? "" : configuration.model + ", ") + series.name;
      chart.series.push_back(std::move(series));
    }
    const ResultRow& best = group.best();
    ChartPoint point = point_of(best, best.throughput, best.throughput_half_width);
    point.x = configuration.replicas;
    most_replicas = std::max(most_replicas, configuration.replicas);
    chart.series[place->second].points.push_back(point);
  }
  if (!groups.empty()) {
    const ResultRow& first = groups.front().best();
    const double each = first.throughput / groups.front().configuration.replicas;
    ChartSeries ideal{
        .name = "proportional", .hue = kNeutralHue, .shade = 0.5, .style = LineStyle::kDashed};
    for (const int replicas : {groups.front().configuration.replicas, most_replicas}) {
      ideal.points.push_back({.x = static_cast<double>(replicas), .y = each * replicas});
    }
    chart.series.push_back(std::move(ideal));
  }
  return chart;
}

}  // namespace septet::measure
