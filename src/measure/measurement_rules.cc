#include "measure/measurement_rules.h"

#include "base/check.h"

namespace septet::measure {

std::vector<Level> level_range(LoadMode mode, double begin, double end, double step) {
  CHECK(step > 0);
  std::vector<Level> levels = {Level{mode, begin}};
  // Multiplied, not added up: steps such as 0.1 must not drift past the end.
  constexpr double kTolerance = 1e-9;
  for (std::size_t i = 1; begin + static_cast<double>(i) * step <= end + kTolerance * step; ++i) {
    levels.push_back(Level{mode, begin + static_cast<double>(i) * step});
  }
  return levels;
}

}  // namespace septet::measure
