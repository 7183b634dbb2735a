#include "measure/level_sweep.h"

#include <cmath>

#include "base/check.h"

namespace septet::measure {

namespace {

// A search over fractional rates halves no more often than this.
constexpr std::uint64_t kMostHalvings = 64;
// Steps such as 0.1 must reach an end that they meet only in exact arithmetic.
constexpr double kTolerance = 1e-9;

}  // namespace

LevelSweep::LevelSweep(LoadMode mode, double begin, double end, double step)
    : mode_(mode), begin_(begin), end_(end), step_(step), now_(begin) {
  CHECK(begin > 0 && step > 0);
}

LevelSweep LevelSweep::linear(LoadMode mode, double begin, double end, double step) {
  return {mode, begin, end, step};
}

LevelSweep LevelSweep::binary(LoadMode mode, double begin, double end, double step) {
  CHECK(end >= begin);
  LevelSweep sweep(mode, begin, end, step);
  sweep.binary_ = true;
  return sweep;
}

std::optional<Level> LevelSweep::next() const {
  return now_ ? std::optional(Level{mode_, *now_}) : std::nullopt;
}

void LevelSweep::finished(const LevelResult& result) {
  CHECK(now_.has_value());
  ++measured_;
  if (result.interrupted) {
    now_.reset();
    return;
  }
  if (!binary_) {
    const double following = begin_ + static_cast<double>(measured_) * step_;
    const bool more = end_ == 0 || following <= end_ + kTolerance * step_;
    now_ = more && !result.over_limit ? std::optional(following) : std::nullopt;
    return;
  }
  // The first level must pass and the last must not: otherwise there is nothing to search between.
  if (measured_ == 1) {
    low_ = begin_;
    now_ = result.over_limit || end_ == begin_ ? std::nullopt : std::optional(end_);
    return;
  }
  if (measured_ == 2) {
    if (!result.over_limit) {
      now_.reset();
      return;
    }
    high_ = end_;
  } else {
    (result.over_limit ? high_ : low_) = *now_;
  }
  halve();
}

void LevelSweep::halve() {
  double middle = (low_ + high_) / 2;
  if (mode_ == LoadMode::kConcurrency) {
    middle = std::floor(middle);
  }
  const bool narrow = high_ - low_ <= step_ || middle <= low_ || middle >= high_;
  now_ = narrow || measured_ > kMostHalvings ? std::nullopt : std::optional(middle);
}

}  // namespace septet::measure
