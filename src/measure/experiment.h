// Experiment: the rows of one or more runs, ordered by configuration; what charts and verdict read.
//
// A configuration is what stays equal along a line of a chart: technique and replicas, and the run,
// the model and the partitions' profile where there are several. Values, any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure/results.h"

namespace septet::measure {

struct Configuration {
  std::string run{};    // empty when all rows come from one run
  std::string model{};  // empty when all rows are of one model
  std::string technique{};
  std::string profile{};  // of the partitions; empty when all rows are of one
  int replicas = 1;

  auto operator<=>(const Configuration&) const = default;
};

struct ConfigurationRows {
  Configuration configuration;
  std::vector<ResultRow> rows;  // ascending concurrency, one row each (the last measured counts)

  // The lowest concurrency that reaches 97 % of the highest throughput: beyond it requests only
  // wait longer. Never called on empty rows.
  const ResultRow& best() const;
  // The row at that concurrency, if it was measured.
  const ResultRow* at(int concurrency) const;
};

// Runs in order of appearance; in each, partitioned configurations first, then by technique,
// replicas ascending.
std::vector<ConfigurationRows> group_rows(const std::vector<ResultRow>& rows);

// "7 x MIG" with a multiplication sign; with model and run in front where they are set.
std::string configuration_name(const Configuration& configuration);
// How a technique is called in a sentence: "MIG partitions", "time-slicing".
std::string technique_name(const std::string& technique);
// How it is called beside a line of a chart: "MIG", "streams".
std::string technique_label(const std::string& technique);
// Whether replicas of that technique run on partitions of the GPU of their own.
bool is_partitioned(const std::string& technique);

// "29.2 ± 0.6", or the value alone with three significant digits.
std::string with_half_width(double value, const std::optional<double>& half_width);
// A latency in the unit that suits it: "272 ms", "3.99 ms", "812 µs"; "-" for NaN.
std::string latency_text(double latency_us);

}  // namespace septet::measure
