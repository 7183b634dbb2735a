#include "measure/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"
#include "measure/chart.h"
#include "measure/verdict_cautions.h"
#include "measure/verdict_words.h"

namespace septet::measure {
namespace {

constexpr double kUncertaintyWithoutInterval = 0.10;
constexpr double kUncertaintyOfUnstable = 0.30;

double relative_uncertainty(double value, const std::optional<double>& half_width, bool stable) {
  double known = kUncertaintyWithoutInterval;
  if (half_width && value > 0) {
    known = *half_width / value;
  }
  return stable ? known : std::max(known, kUncertaintyOfUnstable);
}

Comparison compare(double first, double second, double first_uncertainty,
                   double second_uncertainty) {
  Comparison comparison;
  if (!(first > 0) || !(second > 0)) {
    return comparison;  // nothing answered or not reported: there is no ratio to speak of
  }
  comparison.ratio = second / first;
  comparison.uncertainty = std::hypot(first_uncertainty, second_uncertainty);
  if (comparison.ratio * (1 - comparison.uncertainty) > 1) {
    comparison.order = Order::kHigher;
  } else if (comparison.ratio * (1 + comparison.uncertainty) < 1) {
    comparison.order = Order::kLower;
  }
  return comparison;
}

// The configurations of one technique (of one run and model), replicas ascending.
using Family = std::vector<const ConfigurationRows*>;

std::vector<Family> families_of(const std::vector<ConfigurationRows>& groups) {
  std::vector<Family> families;
  for (const ConfigurationRows& group : groups) {
    const Configuration& next = group.configuration;
    const Configuration* last = families.empty() ? nullptr : &families.back().back()->configuration;
    if (last == nullptr || std::tie(last->run, last->model, last->technique, last->profile) !=
                               std::tie(next.run, next.model, next.technique, next.profile)) {
      families.emplace_back();
    }
    families.back().push_back(&group);
  }
  return families;
}

// "With MIG partitions", with model and run where they matter.
std::string family_name(const Configuration& configuration) {
  std::string name = technique_name(configuration.technique);
  for (const std::string& part : {configuration.profile, configuration.model, configuration.run}) {
    name += part.empty() ? "" : " (" + part + ")";
  }
  return name;
}

// Whether each step to more replicas brought more throughput, or at least was not seen to cost any.
bool grew_at_every_step(const Family& family) {
  return std::adjacent_find(family.begin(), family.end(), [](const auto* fewer, const auto* more) {
           return more->best().throughput <= fewer->best().throughput;
         }) == family.end();
}

Finding scaling_finding(const Family& family) {
  const ConfigurationRows& fewest = *family.front();
  const ConfigurationRows& most = *family.back();
  const Comparison change = compare_throughput(fewest.best(), most.best());
  const std::string from_to =
      fmt::format("from {} with {} to {} inferences/s with {}", rate_text(fewest.best()),
                  count_of(fewest.configuration.replicas, "replica"), rate_text(most.best()),
                  most.configuration.replicas);
  const std::string name = family_name(most.configuration);
  if (change.order == Order::kUnknown) {
    return {FindingKind::kNoDifference,
            fmt::format("With {}, the numbers do not show that replicas change throughput: {}.",
                        name, from_to)};
  }
  if (change.order == Order::kLower) {
    return {FindingKind::kDifference,
            fmt::format("With {}, throughput fell with more replicas: {}, {}.", name, from_to,
                        change_text(change.ratio, "more", "less"))};
  }
  const double ideal = static_cast<double>(most.configuration.replicas) /
                       static_cast<double>(fewest.configuration.replicas);
  return {FindingKind::kDifference,
          fmt::format("With {}, throughput grew with replicas{}: {}, {} ({:.0f} % of what {} times "
                      "the replicas could give).",
                      name, grew_at_every_step(family) ? "" : ", though not at every step", from_to,
                      change_text(change.ratio, "more", "less"), change.ratio / ideal * 100,
                      chart_number(ideal))};
}

std::set<int> common_levels(const ConfigurationRows& a, const ConfigurationRows& b) {
  std::set<int> levels;
  for (const ResultRow& row : a.rows) {
    if (b.at(row.concurrency) != nullptr) {
      levels.insert(row.concurrency);
    }
  }
  return levels;
}

void add_latency_finding(const Family& family, std::vector<Finding>& findings) {
  const std::set<int> levels = common_levels(*family.front(), *family.back());
  if (levels.empty()) {
    return;
  }
  const int level = *levels.rbegin();
  const ResultRow& few = *family.front()->at(level);
  const ResultRow& many = *family.back()->at(level);
  const Comparison change = compare_p90(few, many);
  const std::string from_to = fmt::format("from {} with {} to {} with {}", latency_text(few.p90_us),
                                          count_of(few.context.replicas, "replica"),
                                          latency_text(many.p90_us), many.context.replicas);
  const std::string where =
      fmt::format("With {} at concurrency {}, ", family_name(family.back()->configuration), level);
  if (change.order == Order::kUnknown) {
    findings.push_back({FindingKind::kNoDifference,
                        where + "no change of the p90 latency can be told: " + from_to + "."});
    return;
  }
  findings.push_back(
      {FindingKind::kDifference, fmt::format("{}the p90 latency {} {}: {}.", where,
                                             change.order == Order::kLower ? "fell" : "rose",
                                             from_to, latency_change(change))});
}

// The level at which both sides can be busy: the first common one with a request for each replica.
int fair_level(const std::set<int>& levels, int replicas) {
  const auto enough = levels.lower_bound(replicas);
  return enough == levels.end() ? *levels.rbegin() : *enough;
}

std::string side_text(const Comparison& change, const std::string& figures, std::string_view what,
                      const std::string& change_words) {
  if (change.order == Order::kUnknown) {
    return fmt::format("no difference in {} can be told ({})", what, figures);
  }
  return fmt::format("{} is {} ({})", what, change_words, figures);
}

void add_technique_finding(const ConfigurationRows& partitioned, const ConfigurationRows& other,
                           std::vector<Finding>& findings) {
  const std::set<int> levels = common_levels(partitioned, other);
  if (levels.empty()) {
    return;
  }
  const int level = fair_level(levels, partitioned.configuration.replicas);
  const ResultRow& own = *partitioned.at(level);
  const ResultRow& undivided = *other.at(level);
  const Comparison rate = compare_throughput(undivided, own);
  const Comparison tail = compare_p90(undivided, own);
  const std::string rates =
      fmt::format("{} against {} inferences/s", rate_text(own), rate_text(undivided));
  const std::string tails =
      fmt::format("{} against {}", latency_text(own.p90_us), latency_text(undivided.p90_us));
  const bool same = rate.order == Order::kUnknown && tail.order == Order::kUnknown;
  findings.push_back(
      {same ? FindingKind::kNoDifference : FindingKind::kDifference,
       fmt::format("With {} on {} instead of {}, at concurrency {}, {}; {}.",
                   count_of(partitioned.configuration.replicas, "replica"),
                   family_name(partitioned.configuration), family_name(other.configuration), level,
                   side_text(rate, rates, "throughput", change_text(rate.ratio, "higher", "lower")),
                   side_text(tail, tails, "the p90 latency", latency_change(tail)))});
}

// Each undivided technique against the partitions, at the largest replica count that both have.
void add_technique_findings(const std::vector<Family>& families, std::vector<Finding>& findings) {
  for (const Family& partitioned : families) {
    if (!is_partitioned(partitioned.front()->configuration.technique)) {
      continue;
    }
    for (const Family& other : families) {
      const Configuration& a = partitioned.front()->configuration;
      const Configuration& b = other.front()->configuration;
      if (is_partitioned(b.technique) || a.run != b.run || a.model != b.model) {
        continue;
      }
      for (auto own = partitioned.rbegin(); own != partitioned.rend(); ++own) {
        const auto same = std::find_if(other.begin(), other.end(), [&](const auto* group) {
          return group->configuration.replicas == (*own)->configuration.replicas;
        });
        if (same != other.end()) {
          add_technique_finding(**own, **same, findings);
          break;
        }
      }
    }
  }
}

// Whether both are the same work in different runs. Of a foreign run, only the name is known.
bool same_but_for_the_run(const Configuration& a, const Configuration& b) {
  return std::tie(a.model, a.technique, a.profile, a.replicas) ==
             std::tie(b.model, b.technique, b.profile, b.replicas) &&
         a.run != b.run;
}

void add_run_finding(const ConfigurationRows& first, const ConfigurationRows& other,
                     std::vector<Finding>& findings) {
  const Comparison rate = compare_throughput(first.best(), other.best());
  const std::string rates =
      fmt::format("{} against {} inferences/s", rate_text(other.best()), rate_text(first.best()));
  std::string text =
      fmt::format("{} against {}, each at its best: {}", configuration_name(other.configuration),
                  configuration_name(first.configuration),
                  side_text(rate, rates, "throughput", change_text(rate.ratio, "higher", "lower")));
  bool same = rate.order == Order::kUnknown;
  const std::set<int> levels = common_levels(first, other);
  if (!levels.empty()) {
    const int level = *levels.rbegin();
    const ResultRow& a = *first.at(level);
    const ResultRow& b = *other.at(level);
    const Comparison tail = compare_p90(a, b);
    const std::string tails =
        fmt::format("{} against {}", latency_text(b.p90_us), latency_text(a.p90_us));
    text += fmt::format("; at {} {}, {}",
                        a.load == LoadMode::kConcurrency ? "concurrency" : "request rate", level,
                        side_text(tail, tails, "the p90 latency", latency_change(tail)));
    same = same && tail.order == Order::kUnknown;
  }
  findings.push_back({same ? FindingKind::kNoDifference : FindingKind::kDifference, text + "."});
}

// Every later run against the first one that has the same configuration.
void add_run_findings(const std::vector<ConfigurationRows>& groups,
                      std::vector<Finding>& findings) {
  for (auto other = groups.begin(); other != groups.end(); ++other) {
    const auto first = std::find_if(groups.begin(), other, [&](const ConfigurationRows& group) {
      return same_but_for_the_run(group.configuration, other->configuration);
    });
    if (first != other) {
      add_run_finding(*first, *other, findings);
    }
  }
}

}  // namespace

Comparison compare_throughput(const ResultRow& first, const ResultRow& second) {
  return compare(
      first.throughput, second.throughput,
      relative_uncertainty(first.throughput, first.throughput_half_width, first.stable),
      relative_uncertainty(second.throughput, second.throughput_half_width, second.stable));
}

Comparison compare_p90(const ResultRow& first, const ResultRow& second) {
  return compare(first.p90_us, second.p90_us,
                 relative_uncertainty(first.p90_us, first.p90_half_width_us, first.stable),
                 relative_uncertainty(second.p90_us, second.p90_half_width_us, second.stable));
}

std::vector<Finding> draw_verdict(const std::vector<ResultRow>& rows) {
  std::vector<Finding> findings;
  if (rows.empty()) {
    return findings;
  }
  const std::vector<ConfigurationRows> groups = group_rows(rows);
  const std::vector<Family> families = families_of(groups);
  for (const Family& family : families) {
    if (family.size() > 1) {
      findings.push_back(scaling_finding(family));
      add_latency_finding(family, findings);
    }
  }
  add_technique_findings(families, findings);
  add_run_findings(groups, findings);
  for (Finding& caution : draw_cautions(groups, rows)) {
    findings.push_back(std::move(caution));
  }
  return findings;
}

}  // namespace septet::measure
