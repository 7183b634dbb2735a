#include "measure/verdict_cautions.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "measure/verdict_words.h"

namespace septet::measure {
namespace {

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
  const bool limited = std::all_of(rows.begin(), rows.end(),
                                   [](const ResultRow& row) { return row.context.limited; });
  if (!limited) {
    findings.push_back(
        {FindingKind::kCaution,
         fmt::format("The {} was simulated without limits per slice: every replica could use the "
                     "whole machine, so nothing about partitions follows from these figures.",
                     gpu)});
    return;
  }
  findings.push_back(
      {FindingKind::kCaution,
       fmt::format(
           "The {} was simulated: replicas ran on this machine's processor, each partition a "
           "real limit on its share of processor time and memory. How the configurations "
           "compare is measured; the absolute figures are not those of a GPU.",
           gpu)});
}

}  // namespace

std::vector<Finding> draw_cautions(const std::vector<ConfigurationRows>& groups,
                                   const std::vector<ResultRow>& rows) {
  std::vector<Finding> cautions;
  add_reach_caution(groups, cautions);
  add_row_cautions(rows, cautions);
  add_simulation_caution(rows, cautions);
  return cautions;
}

}  // namespace septet::measure
