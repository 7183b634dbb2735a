#include <fmt/format.h>

#include <algorithm>

#include "measure/chart.h"
#include "measure/experiment.h"
#include "measure/report.h"
#include "measure/report_profiles.h"
#include "measure/terminal_text.h"
#include "measure/verdict.h"

namespace septet::measure {
namespace {

constexpr int kNarrowest = 40;

std::string best_table(const std::vector<ConfigurationRows>& groups) {
  std::vector<std::vector<std::string>> cells = {
      {"configuration", "inferences/s", "at concurrency", "p90", "p99", "failed"}};
  for (const ConfigurationRows& group : groups) {
    const ResultRow& best = group.best();
    std::uint64_t errors = 0;
    for (const ResultRow& row : group.rows) {
      errors += row.errors;
    }
    cells.push_back({configuration_name(group.configuration), chart_number(best.throughput),
                     fmt::format("{}", best.concurrency), latency_text(best.p90_us),
                     latency_text(best.p99_us), fmt::format("{}", errors)});
  }
  std::vector<int> widths(cells[0].size(), 0);
  for (const auto& line : cells) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], terminal_columns(line[i]));
    }
  }
  std::string out;
  for (const auto& line : cells) {
    std::string text = pad_right(line[0], widths[0]);
    for (std::size_t i = 1; i < line.size(); ++i) {
      text += "  " + pad_left(line[i], widths[i]);
    }
    out += text + '\n';
  }
  return out;
}

std::string_view mark_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::kDifference:
      return "* ";
    case FindingKind::kNoDifference:
      return "= ";
    case FindingKind::kCaution:
      return "! ";
  }
  return "  ";
}

}  // namespace

std::string report_text(const ReportInput& input, int width) {
  const int columns = std::max(width, kNarrowest);
  const std::vector<ConfigurationRows> groups = group_rows(input.rows);
  if (groups.empty()) {
    return "Nothing was measured.\n";
  }
  std::string out = best_table(groups) + '\n';
  for (const Finding& finding : draw_verdict(input.rows)) {
    out += wrap_text(mark_of(finding.kind), finding.text, columns);
  }
  for (const std::string& note : input.notes) {
    out += wrap_text("! ", note, columns);
  }
  return out + profile_text(input, columns);
}

}  // namespace septet::measure
