// LearnedLatency: the percentile of how long requests of one kind are at a replica.
//
// Owned by Dispatcher, one per model and class of sizes. Counts by duration, 16 places an octave
// so the answer is at most 6 % too
// long. Every 2048 observations all counts are halved. The percentile is worked out anew every 32.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/time.h"

namespace septet::balance {

class LearnedLatency {
 public:
  // share: of the requests that are within the percentile, 0..1.
  explicit LearnedLatency(double share) : share_(share) {}

  void observe(Duration took);
  // Nothing until enough was seen to say so.
  std::optional<Duration> percentile() const { return percentile_; }

 private:
  static constexpr std::size_t kOctaves = 44;  // of nanoseconds: 5 hours
  static constexpr std::size_t kPlaces = 16;

  static std::size_t place(Duration took);
  static Duration longest_at(std::size_t place);
  void choose();

  double share_;
  std::array<std::uint32_t, (kOctaves + 1) * kPlaces> counts_{};
  std::uint64_t total_ = 0;  // of counts_
  std::uint64_t seen_ = 0;
  std::optional<Duration> percentile_;
};

}  // namespace septet::balance
