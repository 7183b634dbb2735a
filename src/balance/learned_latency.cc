#include "balance/learned_latency.h"

#include <algorithm>
#include <bit>

namespace septet::balance {

namespace {

constexpr std::uint32_t kWeight = 16;  // of a new observation, so that halves of it are left
constexpr std::uint64_t kMostWeight = 4096ULL * kWeight;
constexpr std::uint64_t kEnough = 128;
constexpr std::uint64_t kObservationsPerChoice = 32;
constexpr unsigned kPlaceBits = 4;

}  // namespace

// Below 16 ns each nanosecond has a place; above, the first five bits of the number name it.
std::size_t LearnedLatency::place(Duration took) {
  const auto ns = static_cast<std::uint64_t>(std::max<Duration::rep>(0, took.count()));
  const auto width = static_cast<unsigned>(std::bit_width(ns));
  if (width <= kPlaceBits) {
    return ns;
  }
  const std::size_t octave = width - kPlaceBits;
  const std::size_t within = ns >> (octave - 1) & (kPlaces - 1);
  return std::min(octave * kPlaces + within, (kOctaves + 1) * kPlaces - 1);
}

Duration LearnedLatency::longest_at(std::size_t place) {
  const std::size_t octave = place / kPlaces;
  const std::uint64_t within = place % kPlaces;
  return octave == 0 ? Duration(place) : Duration(((kPlaces + within + 1) << (octave - 1)) - 1);
}

void LearnedLatency::observe(Duration took) {
  counts_[place(took)] += kWeight;
  total_ += kWeight;
  ++seen_;
  if (total_ >= kMostWeight) {
    total_ = 0;
    for (std::uint32_t& count : counts_) {
      count /= 2;
      total_ += count;
    }
  }
  if (seen_ >= kEnough && seen_ % kObservationsPerChoice == 0) {
    choose();
  }
}

void LearnedLatency::choose() {
  const double wanted = share_ * static_cast<double>(total_);
  std::uint64_t within = 0;
  for (std::size_t index = 0; index < counts_.size(); ++index) {
    within += counts_[index];
    if (static_cast<double>(within) >= wanted) {
      percentile_ = longest_at(index);
      return;
    }
  }
}

}  // namespace septet::balance
