// Wishes spread over several GPUs.
//
//   pack     as few GPUs as possible: the fullest that still has room takes the next instance
//   spread   as evenly as possible: the emptiest takes it
//   each     every GPU gets all wishes (what nvidia-smi and mig-parted do)
//
// Wishes go largest first; for each the GPUs are tried in the order of the policy, and a GPU takes
// it when the exact search of one GPU says that all it has taken fits together. When a wish finds
// no place the search goes back, within kMostTries; GPUs that look the same count once. With the
// replace policy a GPU that already has a fitting instance is tried first, so little is destroyed.
// Pure.
#pragma once

#include <vector>

#include "base/result.h"
#include "gpu/types.h"
#include "partition/gpu_plan.h"

namespace septet::partition {

enum class Distribution { kEach, kPack, kSpread };

// Searches of one GPU before giving up; a plan for 16 GPUs needs a few hundred.
inline constexpr unsigned kMostTries = 20'000;

// One plan per GPU, in their order; GPUs that get nothing have a plan that changes nothing (keep
// policy) or leaves nothing (replace policy). kNoCapacity says how many wishes found a place, and
// whether that is proven or the search gave up.
Result<std::vector<GpuPlan>> plan_fleet(const std::vector<gpu::GpuState>& states, const Want& want,
                                        const PlanOptions& options, Distribution distribution);

}  // namespace septet::partition
