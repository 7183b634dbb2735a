#include "measure/profile_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "measure/verdict_words.h"

namespace septet::measure {
namespace {

constexpr double kSecondsPerHour = 3600;

// The rows of one model and profile, in order of appearance.
struct ProfileRows {
  std::string model;
  std::string profile;
  std::vector<const ResultRow*> rows;
};

std::vector<ProfileRows> rows_by_profile(const std::vector<ResultRow>& rows) {
  std::vector<ProfileRows> groups;
  for (const ResultRow& row : rows) {
    if (row.context.profile.empty()) {
      continue;
    }
    auto group = std::find_if(groups.begin(), groups.end(), [&](const ProfileRows& other) {
      return other.model == row.context.model && other.profile == row.context.profile;
    });
    if (group == groups.end()) {
      groups.push_back({row.context.model, row.context.profile, {}});
      group = std::prev(groups.end());
    }
    group->rows.push_back(&row);
  }
  return groups;
}

int instances_of(const std::string& profile, const ProfileQuestion& question) {
  const auto found = question.instances.find(profile);
  return found == question.instances.end() ? 0 : found->second;
}

// How many times what was measured a GPU full of this profile does.
double scale_of(const ResultRow& row, int instances) {
  return instances > 0 && row.context.replicas > 0
             ? static_cast<double>(instances) / row.context.replicas
             : 1.0;
}

bool keeps_limit(const ResultRow& row, const ProfileQuestion& question) {
  return !question.p90_limit_us || row.p90_us <= *question.p90_limit_us;
}

ProfileResult result_of(const ProfileRows& group, const ProfileQuestion& question) {
  const int instances = instances_of(group.profile, question);
  const ResultRow* best = nullptr;
  const ResultRow* fastest = group.rows.front();
  for (const ResultRow* row : group.rows) {
    const auto full = [&](const ResultRow* r) { return r->throughput * scale_of(*r, instances); };
    if (keeps_limit(*row, question) && (best == nullptr || full(row) > full(best))) {
      best = row;
    }
    if (row->p90_us < fastest->p90_us) {
      fastest = row;
    }
  }
  ProfileResult result{.model = group.model,
                       .profile = group.profile,
                       .instances = instances,
                       .row = best != nullptr ? *best : *fastest,
                       .within_limit = best != nullptr,
                       .gpu_half_width = {},
                       .price_of_million = {}};
  const double scale = scale_of(result.row, instances);
  result.scaled_up = scale != 1.0;
  result.gpu_throughput = result.row.throughput * scale;
  if (result.row.throughput_half_width) {
    result.gpu_half_width = *result.row.throughput_half_width * scale;
  }
  if (question.price_per_hour && result.gpu_throughput > 0) {
    result.price_of_million =
        *question.price_per_hour / kSecondsPerHour / result.gpu_throughput * 1e6;
  }
  return result;
}

// A row that stands for the full GPU, so that the verdict's rule of uncertainty holds for it.
ResultRow full_gpu_row(const ProfileResult& result) {
  ResultRow row = result.row;
  row.throughput = result.gpu_throughput;
  row.throughput_half_width = result.gpu_half_width;
  return row;
}

std::string figures_of(const ProfileResult& result) {
  return fmt::format("{} inferences/s a GPU, p90 {}",
                     with_half_width(result.gpu_throughput, result.gpu_half_width),
                     latency_text(result.row.p90_us));
}

Finding model_finding(const std::vector<const ProfileResult*>& of_model,
                      const ProfileQuestion& question) {
  const ProfileResult& best = *of_model.front();
  const std::string name = best.model.empty() ? "this model" : best.model;
  const std::string within =
      question.p90_limit_us
          ? fmt::format(" with p90 within {}", latency_text(*question.p90_limit_us))
          : std::string();
  if (!best.within_limit) {
    return {FindingKind::kCaution,
            fmt::format("For {}, no profile keeps p90 within {}; the nearest is {} ({}).", name,
                        latency_text(*question.p90_limit_us), best.profile,
                        latency_text(best.row.p90_us))};
  }
  const bool alone = of_model.size() == 1 || !of_model[1]->within_limit;
  if (alone) {
    return {FindingKind::kDifference, fmt::format("For {}{}, only {} will do: {}.", name, within,
                                                  best.profile, figures_of(best))};
  }
  const ProfileResult& next = *of_model[1];
  const Comparison gap = compare_throughput(full_gpu_row(next), full_gpu_row(best));
  if (gap.order != Order::kHigher) {
    return {FindingKind::kNoDifference,
            fmt::format("For {}{}, {} ({}) and {} ({}) cannot be told apart by throughput.", name,
                        within, best.profile, figures_of(best), next.profile, figures_of(next))};
  }
  return {FindingKind::kDifference,
          fmt::format("For {}{}, {} gives the most: {}, {} than {} ({}).", name, within,
                      best.profile, figures_of(best),
                      gap.ratio >= 2 ? change_text(gap.ratio, "", "") + " and more"
                                     : change_text(gap.ratio, "more", "less"),
                      next.profile, figures_of(next))};
}

}  // namespace

std::vector<ProfileResult> compare_profiles(const std::vector<ResultRow>& rows,
                                            const ProfileQuestion& question) {
  std::vector<std::string> models;
  std::vector<ProfileResult> results;
  for (const ProfileRows& group : rows_by_profile(rows)) {
    if (std::find(models.begin(), models.end(), group.model) == models.end()) {
      models.push_back(group.model);
    }
    results.push_back(result_of(group, question));
  }
  const auto place_of = [&](const ProfileResult& result) {
    return std::find(models.begin(), models.end(), result.model) - models.begin();
  };
  std::stable_sort(
      results.begin(), results.end(), [&](const ProfileResult& a, const ProfileResult& b) {
        if (place_of(a) != place_of(b)) {
          return place_of(a) < place_of(b);
        }
        if (a.within_limit != b.within_limit) {
          return a.within_limit;
        }
        return a.within_limit ? a.gpu_throughput > b.gpu_throughput : a.row.p90_us < b.row.p90_us;
      });
  return results;
}

bool has_profiles(const std::vector<ResultRow>& rows) {
  const std::vector<ProfileRows> groups = rows_by_profile(rows);
  return std::any_of(groups.begin(), groups.end(), [&](const ProfileRows& group) {
    return std::any_of(groups.begin(), groups.end(), [&](const ProfileRows& other) {
      return other.model == group.model && other.profile != group.profile;
    });
  });
}

std::vector<Finding> profile_verdict(const std::vector<ProfileResult>& results,
                                     const ProfileQuestion& question) {
  std::vector<Finding> findings;
  bool scaled_up = false;
  for (auto first = results.begin(); first != results.end();) {
    std::vector<const ProfileResult*> of_model;
    auto next = first;
    for (; next != results.end() && next->model == first->model; ++next) {
      of_model.push_back(&*next);
      scaled_up = scaled_up || next->scaled_up;
    }
    findings.push_back(model_finding(of_model, question));
    first = next;
  }
  if (scaled_up) {
    findings.push_back({FindingKind::kCaution,
                        "Figures marked ~ were measured with fewer partitions than fit and scaled "
                        "up: a full GPU may do less."});
  }
  return findings;
}

Chart profile_chart(const std::vector<ResultRow>& rows, const std::string& model,
                    const ProfileQuestion& question) {
  Chart chart{.id = "profiles",
              .title = model.empty() ? "Partition sizes" : "Partition sizes for " + model,
              .subtitle = "A GPU full of one profile, at rising load; up and to the left is better",
              .x = {.label = "p90 latency", .unit = "ms"},
              .y = {.label = "inferences per second, whole GPU"}};
  for (const ProfileRows& group : rows_by_profile(rows)) {
    if (group.model != model) {
      continue;
    }
    const int instances = instances_of(group.profile, question);
    ChartSeries series{
        .name = group.profile, .hue = static_cast<int>(chart.series.size()), .shade = 0.7};
    for (const ResultRow* row : group.rows) {
      const double scale = scale_of(*row, instances);
      ChartPoint point{.x = row->p90_us / 1e3, .y = row->throughput * scale};
      point.doubtful = !row->stable || row->errors > 0;
      point.note = fmt::format("concurrency {}", row->concurrency);
      if (std::isfinite(point.x)) {
        series.points.push_back(point);
      }
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

}  // namespace septet::measure
