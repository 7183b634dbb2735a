#include "partition/placement.h"

#include <bit>
#include <tuple>

namespace septet::partition {
namespace {

// Lower is better.
auto rank(const OnlineChoice& choice, std::span<const PlacementCandidate> candidates) {
  const PlacementCandidate& candidate = candidates[choice.candidate];
  return std::tuple(choice.loss, -std::popcount(candidate.used), choice.candidate,
                    candidate.space.units() - choice.start);
}

}  // namespace

std::optional<OnlineChoice> place_online(std::span<const PlacementCandidate> candidates) {
  std::optional<OnlineChoice> best;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const PlacementCandidate& candidate = candidates[c];
    const std::uint64_t before = candidate.space.future_capacity(candidate.used);
    for (const std::size_t profile : candidate.profiles) {
      for (const LayoutSpace::Spot& spot : candidate.space.spots(profile)) {
        if ((spot.mask & candidate.used) != 0) {
          continue;
        }
        const std::uint64_t after = candidate.space.future_capacity(candidate.used | spot.mask);
        const OnlineChoice choice{c, profile, spot.start, before - after};
        if (!best || rank(choice, candidates) < rank(*best, candidates)) {
          best = choice;
        }
      }
    }
  }
  return best;
}

}  // namespace septet::partition
