// How compute instances share one GPU instance.
//
//   3g GPU instance    slices 0   1   2          7g: slices 0   1   2   3   4   5   6
//                           +---+---+---+                  +-----------+   +-------+---+
//   2c + 1c                 |  2c   |1c |        3c+2c+1c  |    3c     |   |  2c   |1c |
//                           +---+---+---+                  +-----------+   +-------+---+
//
// An instance of c slices starts at multiples of c rounded up to a power of two, and c is either
// the whole GPU instance or at most half of it rounded up (the driver's published compute instance
// profiles). Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "gpu/types.h"

namespace septet::partition {

// A compute instance that exists; a busy one must stay.
struct ExistingCompute {
  gpu::ComputeInstanceId id;
  gpu::Placement placement;
  bool busy = false;
};

// What to do inside one GPU instance that stays.
struct ComputeChange {
  std::vector<gpu::ComputeInstanceId> destroy;
  std::vector<unsigned> create;  // slices, the largest first
  bool operator==(const ComputeChange&) const = default;
};

// Where a compute instance of this many slices may start inside a GPU instance; empty when never.
std::vector<unsigned> compute_starts(unsigned gpu_instance_slices, unsigned slices);

// Whether these compute instances fit side by side in an empty GPU instance.
bool compute_fits(unsigned gpu_instance_slices, std::span<const unsigned> slices);

// The change with the fewest destroyed compute instances, or nothing when the wanted ones do not
// fit beside the busy ones.
std::optional<ComputeChange> plan_compute(unsigned gpu_instance_slices,
                                          std::span<const ExistingCompute> existing,
                                          std::vector<unsigned> wanted);

// How many compute instances of this size one GPU instance holds.
unsigned most_compute(unsigned gpu_instance_slices, unsigned slices);

}  // namespace septet::partition
