#include "measure/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/check.h"
#include "measure/chart.h"

namespace septet::measure {
namespace {

constexpr double kAsGoodAsHighest = 0.97;

template <typename Get>
bool several(const std::vector<ResultRow>& rows, Get get) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const ResultRow& row) { return get(row) != get(rows.front()); });
}

}  // namespace

const ResultRow& ConfigurationRows::best() const {
  CHECK(!rows.empty());
  double highest = 0;
  for (const ResultRow& row : rows) {
    highest = std::max(highest, row.throughput);
  }
  return *std::find_if(rows.begin(), rows.end(), [highest](const ResultRow& row) {
    return row.throughput >= kAsGoodAsHighest * highest;
  });
}

const ResultRow* ConfigurationRows::at(int concurrency) const {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const ResultRow& row) {
    return row.concurrency == concurrency;
  });
  return found == rows.end() ? nullptr : &*found;
}

std::vector<ConfigurationRows> group_rows(const std::vector<ResultRow>& rows) {
  const bool runs = several(rows, [](const ResultRow& row) { return row.context.run; });
  const bool models = several(rows, [](const ResultRow& row) { return row.context.model; });
  std::set<std::string> profiles;
  for (const ResultRow& row : rows) {
    if (!row.context.profile.empty()) {
      profiles.insert(row.context.profile);
    }
  }
  std::map<std::string, std::size_t> run_order;  // of appearance
  std::map<Configuration, std::map<int, ResultRow>> groups;
  for (const ResultRow& row : rows) {
    const bool named = runs || row.context.replicas == 0;
    const Configuration configuration{.run = named ? row.context.run : "",
                                      .model = models ? row.context.model : "",
                                      .technique = row.context.technique,
                                      .profile = profiles.size() > 1 ? row.context.profile : "",
                                      .replicas = row.context.replicas};
    run_order.try_emplace(configuration.run, run_order.size());
    groups[configuration].insert_or_assign(row.concurrency, row);
  }
  std::vector<ConfigurationRows> grouped;
  for (auto& [configuration, by_level] : groups) {
    ConfigurationRows group{configuration, {}};
    for (auto& [level, row] : by_level) {
      group.rows.push_back(std::move(row));
    }
    grouped.push_back(std::move(group));
  }
  const auto rank = [&](const ConfigurationRows& group) {
    return std::pair(run_order.at(group.configuration.run),
                     is_partitioned(group.configuration.technique) ? 0 : 1);
  };
  std::stable_sort(
      grouped.begin(), grouped.end(),
      [&](const ConfigurationRows& a, const ConfigurationRows& b) { return rank(a) < rank(b); });
  return grouped;
}

std::string technique_name(const std::string& technique) {
  static const std::map<std::string, std::string> kNames = {
      {"mig", "MIG partitions"},
      {"mps", "MPS"},
      {"streams", "streams in one process"},
      {"vgpu", "vGPU"},
  };
  const auto found = kNames.find(technique);
  return found == kNames.end() ? technique : found->second;
}

std::string technique_label(const std::string& technique) {
  static const std::map<std::string, std::string> kLabels = {
      {"mig", "MIG"}, {"mps", "MPS"}, {"vgpu", "vGPU"}};
  const auto found = kLabels.find(technique);
  return found == kLabels.end() ? technique : found->second;
}

bool is_partitioned(const std::string& technique) { return technique == "mig"; }

std::string configuration_name(const Configuration& configuration) {
  std::string name;
  for (const std::string& part : {configuration.run, configuration.model}) {
    name += part.empty() ? "" : part + ", ";
  }
  if (configuration.replicas == 0) {  // a foreign run: only its name is known
    return name.empty() ? "measured" : name.substr(0, name.size() - 2);
  }
  return fmt::format("{}{} \u00d7 {}", name, configuration.replicas,
                     configuration.profile.empty() ? technique_label(configuration.technique)
                                                   : configuration.profile);
}

std::string with_half_width(double value, const std::optional<double>& half_width) {
  if (!half_width) {
    return chart_number(value);
  }
  // Both with the decimals that leave the half width one or two significant digits.
  const double place = *half_width > 0 ? std::floor(std::log10(*half_width)) : 0;
  const int decimals = std::clamp(static_cast<int>(-place), 0, 6);
  return fmt::format("{:.{}f} \u00b1 {:.{}f}", value, decimals, *half_width, decimals);
}

std::string latency_text(double latency_us) {
  if (std::isnan(latency_us)) {
    return "-";
  }
  if (latency_us >= 1e6) {
    return chart_number(latency_us / 1e6) + " s";
  }
  if (latency_us >= 1e3) {
    return chart_number(latency_us / 1e3) + " ms";
  }
  return chart_number(latency_us) + " \u00b5s";
}

}  // namespace septet::measure
