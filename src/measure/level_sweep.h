// LevelSweep: which level comes next, given how the last one went.
//
// A state machine without clock: next() names a level, finished() tells how it went.
#pragma once

#include <optional>

#include "measure/level_result.h"
#include "measure/measurement_rules.h"

namespace septet::measure {

class LevelSweep {
 public:
  // begin, begin + step, ... up to end; end 0 = until a level is over the latency limit. Ends early
  // at a level over the limit. Goes on after an unstable level.
  static LevelSweep linear(LoadMode mode, double begin, double end, double step);
  // Measures begin, which should be within the latency limit, then end, which should be above it,
  // and then halves until the gap is no more than the step (perf_analyzer's binary search).
  static LevelSweep binary(LoadMode mode, double begin, double end, double step);

  // The level to measure now; nothing when the sweep is over.
  std::optional<Level> next() const;
  // How the level that next() named went.
  void finished(const LevelResult& result);

 private:
  LevelSweep(LoadMode mode, double begin, double end, double step);
  void halve();

  LoadMode mode_;
  double begin_;
  double end_;
  double step_;
  bool binary_ = false;
  std::optional<double> now_;
  std::uint64_t measured_ = 0;
  double low_ = 0;   // binary: within the limit
  double high_ = 0;  // binary: above it
};

}  // namespace septet::measure
