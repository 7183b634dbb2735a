// Histogram: how often each duration occurred, to within 0.1 %, at any percentile.
//
// HDR-style buckets over nanoseconds: values below 1024 ns are exact, above that every octave is
// cut into 512 equal buckets. Mergeable, so windows and machines can be pooled without keeping
// samples. A value type; any thread may use its own copy. Memory grows to the largest value seen
// (at most 56 octaves x 512 x 8 bytes) and never shrinks, so recording allocates nothing after
// warm-up.
//
//   value    0 .. 1023 | 1024 .. 2047 | 2048 .. 4095 | ...
//   bucket   0 .. 1023 | 1024 .. 1535 | 1536 .. 2047 | ...
//   width        1     |      2       |      4       | ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace septet::measure {

class Histogram {
 public:
  // Negative durations count as zero.
  void record(Duration value) { record(value, 1); }
  void record(Duration value, std::uint64_t count);
  void merge(const Histogram& other);
  // Forgets every value and keeps the memory.
  void clear();

  std::uint64_t count() const { return count_; }
  // Exact smallest, largest, mean and sample standard deviation in nanoseconds; 0 when empty.
  std::uint64_t min_ns() const { return count_ == 0 ? 0 : min_; }
  std::uint64_t max_ns() const { return max_; }
  double mean_ns() const;
  double standard_deviation_ns() const;
  // The value at rank floor(percent / 100 x (n - 1) + 0.5) of the sorted values, which is
  // perf_analyzer's rule, as the middle of its bucket (clamped to min and max). 0 when empty.
  double percentile_ns(double percent) const;
  // The values at or below the limit, as a share of all; 0 when empty.
  double share_at_or_below(Duration limit) const;

  // The buckets, for writing: index -> count, trailing zeros absent.
  const std::vector<std::uint64_t>& buckets() const { return buckets_; }
  static std::size_t bucket_of(std::uint64_t value_ns);
  // The smallest value of a bucket and the number of values in it.
  static std::uint64_t bucket_begin(std::size_t bucket);
  static std::uint64_t bucket_width(std::size_t bucket);

 private:
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  std::uint64_t min_ = UINT64_MAX;
  std::uint64_t max_ = 0;
  // Welford's running mean and sum of squared deviations: no cancellation for long tails.
  double mean_ = 0;
  double squares_ = 0;
};

}  // namespace septet::measure
