#include "partition/layout_search.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace septet::partition {
namespace {

// Lower is better.
struct Score {
  std::int64_t cost = 0;
  std::int64_t lost_capacity = 0;  // minus the future capacity
  std::int64_t lost_slices = 0;    // minus the compute slices given

  bool better_than(const Score& other, Objective objective) const {
    const bool capacity_first = objective == Objective::kLargestCapacity;
    const auto rank = [&](const Score& score) {
      return capacity_first ? std::tuple(score.lost_capacity, score.cost, score.lost_slices)
                            : std::tuple(score.cost, score.lost_capacity, score.lost_slices);
    };
    return rank(*this) < rank(other);
  }
};

struct State {
  std::size_t wish = 0;    // the next one to place, in search order
  std::size_t choice = 0;  // the first choice it may take: equal wishes take theirs in order
  UnitMask used = 0;
  std::uint64_t counts = 0;  // of the profiles with tight limits, in mixed radix
  bool operator==(const State&) const = default;
};

struct StateHash {
  std::size_t operator()(const State& state) const {
    std::uint64_t hash = state.used * 0x9E3779B97F4A7C15ULL;
    hash ^= (state.counts + (state.wish << 8) + (state.choice << 20)) * 0xC2B2AE3D27D4EB4FULL;
    hash ^= hash >> 29;
    return static_cast<std::size_t>(hash * 0xBF58476D1CE4E5B9ULL);
  }
};

struct Best {
  bool feasible = false;
  Score score;
  std::size_t choice = 0;
};

// Counts of the profiles whose own limit is below what would fit side by side.
class TightCounts {
 public:
  explicit TightCounts(const LayoutSpace& space) : radix_(space.profiles().size(), 0) {
    std::uint64_t radix = 1;
    for (std::size_t p = 0; p < space.profiles().size(); ++p) {
      const unsigned limit = space.profile(p).max_instances;
      if (space.remaining(p, 0, 0) == limit && space.spots(p).size() > limit) {
        radix_[p] = radix;
        limits_.push_back({p, limit});
        CHECK(radix < (std::uint64_t{1} << 50));  // a dozen limited profiles of a dozen instances
        radix *= limit + 1;
      }
    }
  }

  bool full(std::uint64_t counts, std::size_t profile) const {
    if (radix_[profile] == 0) {
      return false;
    }
    const auto limit = std::find_if(limits_.begin(), limits_.end(),
                                    [&](const auto& entry) { return entry.first == profile; });
    return counts / radix_[profile] % (limit->second + 1) == limit->second;
  }
  std::uint64_t plus_one(std::uint64_t counts, std::size_t profile) const {
    return counts + radix_[profile];
  }

 private:
  std::vector<std::uint64_t> radix_;  // 0 = not limited
  std::vector<std::pair<std::size_t, unsigned>> limits_;
};

std::vector<ExistingCompute> compute_of(const ExistingInstance& existing, bool may_drain) {
  std::vector<ExistingCompute> result;
  for (const gpu::ComputeInstance& compute : existing.instance.compute_instances) {
    const auto& busy = existing.busy_compute;
    const bool named =
        busy.empty() || std::find(busy.begin(), busy.end(), compute.id) != busy.end();
    result.push_back({compute.id, compute.placement,
                      !may_drain && existing.occupancy == Occupancy::kBusy && named});
  }
  return result;
}

class Search {
 public:
  explicit Search(const PlanRequest& request) : request_(request), tight_(request.space) {
    order_wishes();
  }

  std::optional<SearchResult> run();

 private:
  const Wish& wish(std::size_t position) const { return request_.wishes[order_[position]]; }
  auto shape(std::size_t wish_index) const {
    const Wish& w = request_.wishes[wish_index];
    return std::tie(w.profiles, w.start, w.compute);
  }
  bool same_as_next(std::size_t position) const {
    return position + 1 < order_.size() && shape(order_[position]) == shape(order_[position + 1]);
  }

  void order_wishes();
  void list_choices();
  std::vector<SearchChoice> choices_of(const Wish& wish) const;
  void try_existing(const Wish& wish, SearchChoice& choice) const;
  Best solve(const State& state);
  State after(const State& state, std::size_t choice) const;
  bool keeps_all_busy(const SearchResult& result) const;

  const PlanRequest& request_;
  TightCounts tight_;
  std::vector<std::size_t> order_;                  // wishes in search order
  std::vector<std::vector<SearchChoice>> choices_;  // by position, the preferred first
  UnitMask forbidden_ = 0;                          // under busy instances that must stay
  std::unordered_map<State, Best, StateHash> memo_;
};

// The largest first, equal wishes side by side; independent of the order they were typed in.
void Search::order_wishes() {
  for (std::size_t i = 0; i < request_.wishes.size(); ++i) {
    order_.push_back(i);
  }
  const auto least_size = [&](std::size_t i) {
    unsigned size = kMostUnits;
    for (const std::size_t p : request_.wishes[i].profiles) {
      for (const gpu::Placement& placement : request_.space.profile(p).placements) {
        size = std::min(size, placement.size);
      }
    }
    return size;
  };
  std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    const unsigned size_a = least_size(a);
    const unsigned size_b = least_size(b);
    return size_a != size_b ? size_a > size_b : shape(a) < shape(b);
  });
}

void Search::try_existing(const Wish& wish, SearchChoice& choice) const {
  const gpu::GpuInstanceProfile& profile = request_.space.profile(choice.profile);
  for (std::size_t e = 0; e < request_.existing.size(); ++e) {
    const ExistingInstance& existing = request_.existing[e];
    if (existing.instance.profile_id != profile.id ||
        LayoutSpace::mask_of(existing.instance.placement) != choice.mask) {
      continue;
    }
    const std::vector<unsigned> wanted =
        wish.compute.empty() ? std::vector<unsigned>{profile.slices} : wish.compute;
    auto change = plan_compute(profile.slices, compute_of(existing, request_.may_drain), wanted);
    if (change) {
      const auto lost = static_cast<std::int64_t>(change->destroy.size());
      choice.cost = lost - loss_cost(existing, request_.may_drain);
      choice.existing = e;
      choice.compute = *std::move(change);
    }
  }
}

std::vector<SearchChoice> Search::choices_of(const Wish& wish) const {
  std::vector<SearchChoice> choices;
  for (const std::size_t p : wish.profiles) {
    if (!wish.compute.empty() && !compute_fits(request_.space.profile(p).slices, wish.compute)) {
      continue;
    }
    for (const LayoutSpace::Spot& spot : request_.space.spots(p)) {
      if (wish.start && *wish.start != spot.start) {
        continue;
      }
      SearchChoice choice{.profile = p, .start = spot.start, .mask = spot.mask};
      if (request_.policy == ExistingPolicy::kReplace) {
        try_existing(wish, choice);
      }
      if (choice.existing || (spot.mask & forbidden_) == 0) {
        choices.push_back(std::move(choice));
      }
    }
  }
  std::stable_sort(choices.begin(), choices.end(), [](const auto& a, const auto& b) {
    return std::tie(a.cost, a.start) < std::tie(b.cost, b.start);
  });
  return choices;
}

void Search::list_choices() {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const bool repeats = i > 0 && shape(order_[i]) == shape(order_[i - 1]);
    choices_.push_back(repeats ? choices_.back() : choices_of(wish(i)));
  }
}

State Search::after(const State& state, std::size_t choice) const {
  const SearchChoice& chosen = choices_[state.wish][choice];
  return {.wish = state.wish + 1,
          .choice = same_as_next(state.wish) ? choice + 1 : 0,
          .used = state.used | chosen.mask,
          .counts = tight_.plus_one(state.counts, chosen.profile)};
}

Best Search::solve(const State& state) {
  if (state.wish == order_.size()) {
    const auto capacity = static_cast<std::int64_t>(request_.space.future_capacity(state.used));
    return {.feasible = true, .score = {0, -capacity, 0}};
  }
  if (const auto known = memo_.find(state); known != memo_.end()) {
    return known->second;
  }
  Best best;
  const std::vector<SearchChoice>& choices = choices_[state.wish];
  for (std::size_t c = state.choice; c < choices.size(); ++c) {
    if ((choices[c].mask & state.used) != 0 || tight_.full(state.counts, choices[c].profile)) {
      continue;
    }
    Best rest = solve(after(state, c));
    rest.score.cost += choices[c].cost;
    rest.score.lost_slices -= request_.space.profile(choices[c].profile).slices;
    if (rest.feasible &&
        (!best.feasible || rest.score.better_than(best.score, request_.objective))) {
      best = {.feasible = true, .score = rest.score, .choice = c};
    }
  }
  memo_.emplace(state, best);
  return best;
}

bool Search::keeps_all_busy(const SearchResult& result) const {
  for (std::size_t e = 0; e < request_.existing.size(); ++e) {
    const bool kept = std::any_of(result.choices.begin(), result.choices.end(),
                                  [&](const auto& choice) { return choice.existing == e; });
    if (!kept && loss_cost(request_.existing[e], request_.may_drain) == kBusyCost) {
      return false;
    }
  }
  return true;
}

std::optional<SearchResult> Search::run() {
  State start;
  for (const ExistingInstance& existing : request_.existing) {
    const UnitMask mask = LayoutSpace::mask_of(existing.instance.placement);
    if (request_.policy == ExistingPolicy::kKeep) {
      start.used |= mask;
      const std::size_t profile = request_.space.index_of(existing.instance.profile_id);
      if (profile < request_.space.profiles().size() && !tight_.full(start.counts, profile)) {
        start.counts = tight_.plus_one(start.counts, profile);
      }
    } else if (loss_cost(existing, request_.may_drain) == kBusyCost) {
      forbidden_ |= mask;
    }
  }
  list_choices();
  SearchResult result{.choices = std::vector<SearchChoice>(order_.size()), .used = start.used};
  for (State state = start; state.wish < order_.size();) {
    const Best best = solve(state);
    if (!best.feasible) {
      return std::nullopt;
    }
    const SearchChoice& chosen = choices_[state.wish][best.choice];
    result.choices[order_[state.wish]] = chosen;
    result.used |= chosen.mask;
    state = after(state, best.choice);
  }
  if (request_.policy == ExistingPolicy::kReplace && !keeps_all_busy(result)) {
    return std::nullopt;
  }
  return result;
}

}  // namespace

std::int64_t loss_cost(const ExistingInstance& existing, bool may_drain) {
  switch (existing.occupancy) {
    case Occupancy::kFree:
      return kFreeCost;
    case Occupancy::kIdle:
      return kIdleCost;
    case Occupancy::kBusy:
      return may_drain ? kDrainCost : kBusyCost;
  }
  return kBusyCost;
}

std::optional<SearchResult> search_layout(const PlanRequest& request) {
  return Search(request).run();
}

}  // namespace septet::partition
