#include "measure/stability.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace septet::measure {

namespace {

// Fewer batches than this say too little about their own scatter to stop by.
constexpr std::size_t kMinConfidenceWindows = 6;

// Two-sided 95 % quantiles of Student's t for 1, 2, ... 30 degrees of freedom.
constexpr std::array<double, 30> kStudent = {
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};

double student(std::size_t degrees) {
  return degrees <= kStudent.size() ? kStudent[degrees - 1]
                                    : 1.96 + 2.4 / static_cast<double>(degrees);
}

bool within(double smallest, double largest, double percent) {
  return smallest > 0 && largest / smallest <= 1 + percent / 100;
}

bool steady(std::span<const WindowResult> windows, double percent) {
  const auto [slow, fast] =
      std::minmax_element(windows.begin(), windows.end(),
                          [](const auto& a, const auto& b) { return a.throughput < b.throughput; });
  const auto [low, high] = std::minmax_element(
      windows.begin(), windows.end(),
      [](const auto& a, const auto& b) { return a.judged_latency_us < b.judged_latency_us; });
  return within(slow->throughput, fast->throughput, percent) &&
         within(low->judged_latency_us, high->judged_latency_us, percent);
}

bool tight(const std::vector<double>& batches, double percent) {
  const std::optional<ConfidenceInterval> interval = confidence_interval(batches);
  return interval && interval->mean > 0 && interval->half_width <= interval->mean * percent / 100;
}

bool confident(std::span<const WindowResult> windows, double percent) {
  std::vector<double> throughput;
  std::vector<double> latency;
  for (const WindowResult& window : windows) {
    throughput.push_back(window.throughput);
    latency.push_back(window.judged_latency_us);
  }
  return tight(throughput, percent) && tight(latency, percent);
}

}  // namespace

std::optional<ConfidenceInterval> confidence_interval(std::span<const double> batches) {
  if (batches.size() < 2) {
    return std::nullopt;
  }
  const auto n = static_cast<double>(batches.size());
  double sum = 0;
  for (const double value : batches) {
    sum += value;
  }
  const double mean = sum / n;
  double squares = 0;
  for (const double value : batches) {
    squares += (value - mean) * (value - mean);
  }
  const double error = std::sqrt(squares / (n - 1) / n);
  return ConfidenceInterval{mean, student(batches.size() - 1) * error};
}

std::size_t windows_to_merge(std::span<const WindowResult> windows, const MeasurementRules& rules) {
  if (rules.fixed_windows) {
    return windows.size();
  }
  if (rules.confidence_percent && windows.size() > 1) {
    return windows.size() - 1;
  }
  return std::min(windows.size(), kStabilityWindows);
}

LevelVerdict judge(std::span<const WindowResult> windows, const MeasurementRules& rules) {
  if (rules.fixed_windows) {
    return windows.size() < static_cast<std::size_t>(*rules.fixed_windows) ? LevelVerdict::kContinue
                                                                           : LevelVerdict::kStable;
  }
  const std::span<const WindowResult> merged = windows.last(windows_to_merge(windows, rules));
  const bool enough = windows.size() >= kStabilityWindows;
  const bool limited = rules.latency_limit > Duration::zero();
  if (limited && enough &&
      std::any_of(merged.begin(), merged.end(), [&](const WindowResult& window) {
        return window.judged_latency_us > to_microseconds(rules.latency_limit);
      })) {
    return LevelVerdict::kOverLimit;
  }
  const bool stable = rules.confidence_percent ? merged.size() >= kMinConfidenceWindows &&
                                                     confident(merged, *rules.confidence_percent)
                                               : enough && steady(merged, rules.stability_percent);
  if (stable) {
    return LevelVerdict::kStable;
  }
  return windows.size() >= static_cast<std::size_t>(std::max(1, rules.max_windows))
             ? LevelVerdict::kUnstable
             : LevelVerdict::kContinue;
}

}  // namespace septet::measure
