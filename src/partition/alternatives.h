// The layouts nearest to a want that cannot be had. Internal to the planner; pure.
#pragma once

#include <string>
#include <vector>

#include "partition/planner.h"

namespace septet::partition {

inline constexpr std::size_t kMostAlternatives = 3;

// Feasible wants beside what is busy (or, by policy, beside all that exists), the nearest first:
// most wishes met, then fewest slices lost, then fewest instances that nobody asked for.
std::vector<std::string> nearest_alternatives(const PlanRequest& request);

}  // namespace septet::partition
