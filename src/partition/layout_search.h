// The exact search behind the planner: one spot for every wish, all disjoint, at the least cost.
//
// Dynamic programming over (wish, units taken): equal wishes stand together and take their spots in
// a fixed order, so no layout is visited twice. At most kMostUnits units; on today's GPUs a few
// hundred states. Internal to the planner; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "partition/planner.h"

namespace septet::partition {

// The price of losing an instance, by occupancy; the planner minimises the sum.
inline constexpr std::int64_t kFreeCost = 2;
inline constexpr std::int64_t kIdleCost = 3;
inline constexpr std::int64_t kDrainCost = 1'000;     // a busy one that may be drained
inline constexpr std::int64_t kBusyCost = 1'000'000;  // a busy one that must stay

struct SearchChoice {
  std::size_t profile = 0;
  unsigned start = 0;
  UnitMask mask = 0;
  std::int64_t cost = 0;                  // negative: the price saved by keeping the existing one
  std::optional<std::size_t> existing{};  // index of the instance that is kept for this wish
  ComputeChange compute{};                // inside the kept one
};

struct SearchResult {
  std::vector<SearchChoice> choices;  // one per wish, in the order of the request's wishes
  UnitMask used = 0;                  // with what was kept by policy
};

// Nothing when no layout satisfies the wishes without touching a busy instance.
std::optional<SearchResult> search_layout(const PlanRequest& request);

// What losing this instance costs.
std::int64_t loss_cost(const ExistingInstance& existing, bool may_drain);

}  // namespace septet::partition
