// The report of an experiment: one self-contained HTML page, and the same in a terminal.
//
// The page holds the guide's two charts (throughput and p90 against concurrency, a line per
// configuration), how throughput scales with replicas, a verdict in words, a table of every row and
// what was simulated. It loads nothing from elsewhere. Pure: rows in, text out; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "measure/results.h"

namespace septet::measure {

struct ReportInput {
  std::string title = "Partitioned or not: throughput and latency";
  std::vector<ResultRow> rows;
  std::string command;                   // that measured; shown so that it can be repeated
  std::string measured_at;               // e.g. "2026-11-30 12:40 UTC"
  std::vector<std::string> notes;        // one sentence each: what was left out and why
  std::optional<double> price_per_hour;  // of the whole GPU; adds the cost of a million inferences
  std::string currency = "$";
  // For rows on partitions of several profiles: how many fill the GPU, and the latency objective.
  std::map<std::string, int> instances;
  std::optional<double> p90_limit_us;
};

// The whole page.
std::string report_page(const ReportInput& input);

// A table of every configuration's best throughput and its p90, and the verdict, as lines for a
// terminal of that width (columns).
std::string report_text(const ReportInput& input, int width);

}  // namespace septet::measure
