#include "measure/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace septet::measure {

namespace {

constexpr int kExactBits = 10;                           // values below 2^10 have their own bucket
constexpr std::uint64_t kHalf = 1U << (kExactBits - 1);  // buckets per octave above that

// The octave above the exact range that a value lies in; 0 = exact.
int octave_of(std::uint64_t value) {
  return std::max(0, static_cast<int>(std::bit_width(value)) - kExactBits);
}

}  // namespace

std::size_t Histogram::bucket_of(std::uint64_t value_ns) {
  const int octave = octave_of(value_ns);
  return static_cast<std::size_t>(static_cast<std::uint64_t>(octave) * kHalf +
                                  (value_ns >> octave));
}

std::uint64_t Histogram::bucket_begin(std::size_t bucket) {
  if (bucket < 2 * kHalf) {
    return bucket;
  }
  const std::uint64_t octave = bucket / kHalf - 1;
  return (bucket - octave * kHalf) << octave;
}

std::uint64_t Histogram::bucket_width(std::size_t bucket) {
  return bucket < 2 * kHalf ? 1 : std::uint64_t{1} << (bucket / kHalf - 1);
}

void Histogram::record(Duration value, std::uint64_t count) {
  if (count == 0) {
    return;
  }
  const auto ns = static_cast<std::uint64_t>(std::max<Duration::rep>(0, value.count()));
  const std::size_t bucket = bucket_of(ns);
  if (bucket >= buckets_.size()) {
    buckets_.resize(bucket + 1);
  }
  buckets_[bucket] += count;
  count_ += count;
  min_ = std::min(min_, ns);
  max_ = std::max(max_, ns);
  const auto weight = static_cast<double>(count);
  const double delta = static_cast<double>(ns) - mean_;
  mean_ += delta * weight / static_cast<double>(count_);
  squares_ += weight * delta * (static_cast<double>(ns) - mean_);
}

void Histogram::merge(const Histogram& other) {
  if (other.count_ == 0) {
    return;
  }
  if (other.buckets_.size() > buckets_.size()) {
    buckets_.resize(other.buckets_.size());
  }
  for (std::size_t i = 0; i < other.buckets_.size(); ++i) {
    buckets_[i] += other.buckets_[i];
  }
  const auto mine = static_cast<double>(count_);
  const auto theirs = static_cast<double>(other.count_);
  const double delta = other.mean_ - mean_;
  mean_ += delta * theirs / (mine + theirs);
  squares_ += other.squares_ + delta * delta * mine * theirs / (mine + theirs);
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

void Histogram::clear() {
  std::fill(buckets_.begin(), buckets_.end(), 0);
  count_ = 0;
  min_ = UINT64_MAX;
  max_ = 0;
  mean_ = 0;
  squares_ = 0;
}

double Histogram::mean_ns() const { return count_ == 0 ? 0 : mean_; }

double Histogram::standard_deviation_ns() const {
  return count_ < 2 ? 0 : std::sqrt(squares_ / static_cast<double>(count_ - 1));
}

double Histogram::percentile_ns(double percent) const {
  CHECK(percent >= 0 && percent <= 100);
  if (count_ == 0) {
    return 0;
  }
  const auto rank =
      static_cast<std::uint64_t>(std::floor(percent / 100 * static_cast<double>(count_ - 1) + 0.5));
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    below += buckets_[i];
    if (below > rank) {
      const double middle =
          static_cast<double>(bucket_begin(i)) + static_cast<double>(bucket_width(i) - 1) / 2;
      return std::clamp(middle, static_cast<double>(min_), static_cast<double>(max_));
    }
  }
  return static_cast<double>(max_);
}

double Histogram::share_at_or_below(Duration limit) const {
  if (count_ == 0 || limit < Duration::zero()) {
    return 0;
  }
  const std::size_t last = bucket_of(static_cast<std::uint64_t>(limit.count()));
  std::uint64_t within = 0;
  for (std::size_t i = 0; i <= last && i < buckets_.size(); ++i) {
    within += buckets_[i];
  }
  return static_cast<double>(within) / static_cast<double>(count_);
}

}  // namespace septet::measure
