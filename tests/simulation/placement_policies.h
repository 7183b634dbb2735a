// A loss system of GPUs, to compare where new instances are put: requests for one instance arrive,
// stay and leave; what does not fit is lost. Virtual time, one seed, no migration.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "partition/layout_space.h"

namespace septet::test {

enum class PlacementPolicy {
  kRandom,             // a random GPU that has room, there a random start
  kFirstFit,           // lowest GPU, lowest start
  kBestFitParvaGpu,    // fewest free slices that still fit; ParvaGPU's order of starts
  kBestFitHighStarts,  // fewest free slices that still fit; high starts first
  kDriverLike,         // fewest free slices that still fit; the start that the driver takes
  kLeastCountLoss,     // loses the fewest placements
  kWeightedLoss,       // partition/placement.h: loses the least slices x placements
};

inline constexpr std::array kPlacementPolicies = {
    PlacementPolicy::kRandom,          PlacementPolicy::kFirstFit,
    PlacementPolicy::kBestFitParvaGpu, PlacementPolicy::kBestFitHighStarts,
    PlacementPolicy::kDriverLike,      PlacementPolicy::kLeastCountLoss,
    PlacementPolicy::kWeightedLoss};
const char* to_string(PlacementPolicy policy);

// Probabilities of requests for 1, 2, 3, 4 and 7 slices.
using SizeMix = std::array<double, 5>;

struct LossSystem {
  SizeMix mix{};
  double load = 0;  // offered slices / (7 x GPUs)
  unsigned gpus = 8;
  unsigned arrivals = 60'000;  // the first tenth is not counted
  std::uint64_t seed = 1;
};

struct Accepted {
  double requests_percent = 0;
  double slices_percent = 0;
};

// The five base profiles of an A100: 1g, 2g, 3g, 4g, 7g, in this order.
partition::LayoutSpace base_profiles();

Accepted run_loss_system(const LossSystem& system, PlacementPolicy policy);

}  // namespace septet::test
