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
  if (first <= 0 || second <= 0) {
    return comparison;  // nothing was answered: there is no ratio to speak of
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

std::string count_of(int count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string rate_text(const ResultRow& row) {
  return with_half_width(row.throughput, row.throughput_half_width);
}

// "2.1 times as much", "18 % more".
std::string change_text(double ratio, std::string_view more, std::string_view less) {
  if (ratio >= 2) {
    return fmt::format("{} times as much", chart_number(ratio));
  }
  return fmt::format("{} % {}", chart_number(std::abs(ratio - 1) * 100), ratio >= 1 ? more : less);
}

// The configurations of one technique (of one run and model), replicas ascending.
using Family = std::vector<const ConfigurationRows*>;

std::vector<Family> families_of(const std::vector<ConfigurationRows>& groups) {
  std::vector<Family> families;
  for (const ConfigurationRows& group : groups) {
    const Configuration& next = group.configuration;
    const Configuration* last = families.empty() ? nullptr : &families.back().back()->configuration;
    if (last == nullptr || std::tie(last->run, last->model, last->technique) !=
                               std::tie(next.run, next.model, next.technique)) {
      families.emplace_back();
    }
    families.back().push_back(&group);
  }
  return families;
}

// "With MIG partitions", with model and run where they matter.
std::string family_name(const Configuration& configuration) {
  std::string name = technique_name(configuration.technique);
  for (const std::string& part : {configuration.model, configuration.run}) {
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

std::string latency_change(const Comparison& change) {
  if (change.ratio >= 2) {
    return fmt::format("{} times as long", chart_number(change.ratio));
  }
  if (change.ratio <= 0.5) {
    return fmt::format("{} times shorter", chart_number(1 / change.ratio));
  }
  return fmt::format("{} % {}", chart_number(std::abs(change.ratio - 1) * 100),
                     change.ratio > 1 ? "longer" : "shorter");
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

std::string undivided_side(const Comparison& change, const std::string& figures,
                           std::string_view what, const std::string& change_words) {
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
       fmt::format(
           "With {} on {} instead of {}, at concurrency {}, {}; {}.",
           count_of(partitioned.configuration.replicas, "replica"),
           family_name(partitioned.configuration), family_name(other.configuration), level,
           undivided_side(rate, rates, "throughput", change_text(rate.ratio, "higher", "lower")),
           undivided_side(tail, tails, "the p90 latency", latency_change(tail)))});
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

void add_reach_caution(const std::vector<ConfigurationRows>& groups,
                       std::vector<Finding>& findings) {
  std::vector<std::string> names;
  for (const ConfigurationRows& group : groups) {
    if (group.rows.back().concurrency < group.configuration.replicas) {
      names.push_back(configuration_name(group.configuration));
    }
  }
  if (!names.empty()) {
    findings.push_back(
        {FindingKind::kCaution,
         fmt::format(
             "{} saw fewer requests in flight than there are replicas, so {} could not show "
             "all {} can do; raise the concurrency.",
             join_words(names), names.size() == 1 ? "it" : "they",
             names.size() == 1 ? "it" : "they")});
  }
}

void add_row_cautions(const std::vector<ResultRow>& rows, std::vector<Finding>& findings) {
  std::uint64_t errors = 0;
  int with_errors = 0;
  int unstable = 0;
  int without_interval = 0;
  for (const ResultRow& row : rows) {
    errors += row.errors;
    with_errors += row.errors > 0 ? 1 : 0;
    unstable += row.stable ? 0 : 1;
    without_interval += row.throughput_half_width ? 0 : 1;
  }
  const int all = static_cast<int>(rows.size());
  if (errors > 0) {
    findings.push_back(
        {FindingKind::kCaution,
         fmt::format("{} request{} failed, in {} of {}; failed requests are in no "
                     "throughput and no latency.",
                     errors, errors == 1 ? "" : "s", with_errors, count_of(all, "measurement"))});
  }
  if (unstable > 0) {
    findings.push_back(
        {FindingKind::kCaution,
         fmt::format("{} of {} did not become stable (hollow points); the verdict takes them as "
                     "uncertain by 30 % at least.",
                     unstable, count_of(all, "measurement"))});
  }
  if (without_interval > 0) {
    findings.push_back(
        {FindingKind::kCaution,
         fmt::format("{} of {} have no confidence interval; the verdict takes their figures as "
                     "uncertain by 10 %.",
                     without_interval, count_of(all, "measurement"))});
  }
}

void add_simulation_caution(const std::vector<ResultRow>& rows, std::vector<Finding>& findings) {
  const auto simulated = std::find_if(rows.begin(), rows.end(),
                                      [](const ResultRow& row) { return row.context.simulated; });
  if (simulated == rows.end()) {
    return;
  }
  const std::string gpu = simulated->context.gpu.empty() ? "GPU" : simulated->context.gpu;
  findings.push_back(
      {FindingKind::kCaution,
       fmt::format(
           "The {} was simulated: replicas ran on this machine's processor, each partition a "
           "real limit on its share of processor time and memory. How the configurations "
           "compare is measured; the absolute figures are not those of a GPU.",
           gpu)});
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
  add_reach_caution(groups, findings);
  add_row_cautions(rows, findings);
  add_simulation_caution(rows, findings);
  return findings;
}

}  // namespace septet::measure
