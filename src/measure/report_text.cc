#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "measure/chart.h"
#include "measure/experiment.h"
#include "measure/report.h"
#include "measure/verdict.h"

namespace septet::measure {
namespace {

constexpr int kNarrowest = 40;

// How many columns UTF-8 text takes: continuation bytes take none.
int columns_of(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

std::string padded(const std::string& text, int columns) {
  return text + std::string(static_cast<std::size_t>(std::max(0, columns - columns_of(text))), ' ');
}

// The text in lines of at most that width, behind a mark; further lines are indented as far.
std::string wrapped(std::string_view mark, std::string_view text, int width) {
  const std::string indent(static_cast<std::size_t>(columns_of(mark)), ' ');
  std::string out(mark);
  int column = columns_of(mark);
  bool line_empty = true;
  for (const std::string_view word : split(text, ' ')) {
    const int wide = columns_of(word);
    if (!line_empty && column + 1 + wide > width) {
      out += '\n' + indent;
      column = columns_of(indent);
      line_empty = true;
    }
    if (!line_empty) {
      out += ' ';
      ++column;
    }
    out += word;
    column += wide;
    line_empty = false;
  }
  return out + '\n';
}

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
      widths[i] = std::max(widths[i], columns_of(line[i]));
    }
  }
  std::string out;
  for (const auto& line : cells) {
    std::string text = padded(line[0], widths[0]);
    for (std::size_t i = 1; i < line.size(); ++i) {
      const int blanks = 2 + widths[i] - columns_of(line[i]);
      text += std::string(static_cast<std::size_t>(blanks), ' ') + line[i];
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
    out += wrapped(mark_of(finding.kind), finding.text, columns);
  }
  for (const std::string& note : input.notes) {
    out += wrapped("! ", note, columns);
  }
  return out;
}

}  // namespace septet::measure
