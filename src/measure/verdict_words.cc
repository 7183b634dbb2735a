#include "measure/verdict_words.h"

#include <fmt/format.h>

#include <cmath>

#include "measure/chart.h"
#include "measure/experiment.h"

namespace septet::measure {

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

}  // namespace septet::measure
