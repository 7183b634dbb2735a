// When a level is finished: perf_analyzer's three-window rule, or tight confidence intervals.
//
// Pure functions over the windows measured so far.
#pragma once

#include <optional>
#include <span>

#include "measure/level_result.h"
#include "measure/measurement_rules.h"

namespace septet::measure {

// perf_analyzer compares this many latest windows and merges them.
constexpr std::size_t kStabilityWindows = 3;

enum class LevelVerdict {
  kContinue,   // measure another window
  kStable,     // the rule is met
  kUnstable,   // out of windows
  kOverLimit,  // the judged latency is above the limit
};

// The verdict on the windows so far, latest last.
LevelVerdict judge(std::span<const WindowResult> windows, const MeasurementRules& rules);

// How many of the latest windows belong to the figures of a finished level. The first window of a
// level that was judged by confidence never does: it holds the start of the load.
std::size_t windows_to_merge(std::span<const WindowResult> windows, const MeasurementRules& rules);

// The 95 % confidence interval of the mean of independent batches (Student's t); nothing for fewer
// than two.
std::optional<ConfidenceInterval> confidence_interval(std::span<const double> batches);

}  // namespace septet::measure
