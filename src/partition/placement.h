// Online placement: one more instance now, placed so that the largest future request still fits.
//
// For every GPU and every legal free start the loss is V(before) - V(after), where V is
// LayoutSpace::future_capacity(): over every kind of place its slices times its free starts. The
// smallest loss wins; among equals the fuller GPU, then the lower GPU index, then the higher start.
// In a loss system this accepts more work than first fit, best fit and random placement
// (docs/measurements/placement.md). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "partition/layout_space.h"

namespace septet::partition {

// A GPU to choose from, as it is now.
struct PlacementCandidate {
  const LayoutSpace& space;
  UnitMask used = 0;
  std::vector<std::size_t> profiles;  // acceptable ones that the GPU may still create
};

struct OnlineChoice {
  std::size_t candidate = 0;  // index into the candidates
  std::size_t profile = 0;    // index into that candidate's space
  unsigned start = 0;
  std::uint64_t loss = 0;
  bool operator==(const OnlineChoice&) const = default;
};

// Nothing when it fits nowhere.
std::optional<OnlineChoice> place_online(std::span<const PlacementCandidate> candidates);

}  // namespace septet::partition
