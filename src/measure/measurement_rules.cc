#include "measure/measurement_rules.h"

#include <algorithm>

namespace septet::measure {

MeasurementRules MeasurementRules::adaptive() {
  MeasurementRules rules;
  rules.window = milliseconds(500);
  rules.window_stretch = 1;
  rules.confidence_percent = 5;
  rules.max_windows = 60;
  return rules;
}

std::uint64_t requests_needed(const MeasurementRules& rules, const Level& level) {
  if (rules.requests_per_window) {
    return *rules.requests_per_window;
  }
  if (!rules.confidence_percent) {
    return 0;
  }
  constexpr double kFewest = 30;  // the mean of fewer is far from normal
  const double turn = level.mode == LoadMode::kConcurrency ? level.value : 0;
  return static_cast<std::uint64_t>(std::max(kFewest, turn));
}

}  // namespace septet::measure
