#include "partition/alternatives.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "partition/layout_search.h"
#include "partition/profile_choice.h"

namespace septet::partition {
namespace {

using Counts = std::vector<unsigned>;  // per profile of the full space

struct Distance {
  unsigned unmet = 0;
  unsigned lost_slices = 0;
  unsigned extra = 0;
  auto operator<=>(const Distance&) const = default;
};

// Plain profiles and those wished for: the only ones worth proposing.
std::vector<std::size_t> worth_proposing(const PlanRequest& request) {
  std::vector<std::size_t> result;
  for (std::size_t p = 0; p < request.space.profiles().size(); ++p) {
    const bool wished =
        std::any_of(request.wishes.begin(), request.wishes.end(), [&](const Wish& wish) {
          return std::find(wish.profiles.begin(), wish.profiles.end(), p) != wish.profiles.end();
        });
    if (wished || !is_variant(request.space.profile(p))) {
      result.push_back(p);
    }
  }
  return result;
}

// Meets the pickiest wishes first from what the layout offers.
Distance distance_to(const PlanRequest& request, Counts offered) {
  std::vector<const Wish*> wishes;
  for (const Wish& wish : request.wishes) {
    wishes.push_back(&wish);
  }
  std::stable_sort(wishes.begin(), wishes.end(), [](const Wish* a, const Wish* b) {
    return a->profiles.size() < b->profiles.size();
  });
  Distance distance;
  unsigned missing_slices = 0;
  for (const Wish* wish : wishes) {
    const auto met = std::find_if(wish->profiles.begin(), wish->profiles.end(),
                                  [&](std::size_t p) { return offered[p] > 0; });
    if (met != wish->profiles.end()) {
      --offered[*met];
    } else {
      ++distance.unmet;
      missing_slices += request.space.profile(wish->profiles.front()).slices;
    }
  }
  unsigned extra = 0;
  unsigned extra_slices = 0;
  for (std::size_t p = 0; p < offered.size(); ++p) {
    extra += offered[p];
    extra_slices += offered[p] * request.space.profile(p).slices;
  }
  distance.lost_slices =
      missing_slices > extra_slices ? missing_slices - extra_slices : extra_slices - missing_slices;
  distance.extra = extra;
  return distance;
}

std::string want_text(const LayoutSpace& space, const Counts& counts) {
  std::vector<std::size_t> order;
  for (std::size_t p = 0; p < counts.size(); ++p) {
    if (counts[p] > 0) {
      order.push_back(p);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return space.profile(a).slices > space.profile(b).slices;
  });
  std::string text;
  for (const std::size_t p : order) {
    text += text.empty() ? "" : " ";
    text += space.profile(p).name;
    text += counts[p] == 1 ? "" : fmt::format(":{}", counts[p]);
  }
  return text;
}

// Removes from the layout what must stay as it is; false when the layout does not contain it. With
// the keep policy what stays is no part of the want.
bool accept_existing(const PlanRequest& request, const LayoutSpace& part,
                     const std::vector<PlacedProfile>& layout, UnitMask used, Counts& counts,
                     const std::vector<std::size_t>& to_full) {
  for (const PlacedProfile& placed : layout) {
    ++counts[to_full[placed.profile]];
  }
  for (const ExistingInstance& existing : request.existing) {
    const UnitMask mask = LayoutSpace::mask_of(existing.instance.placement);
    if (request.policy == ExistingPolicy::kKeep) {
      if ((used & mask) != 0) {
        return false;
      }
      continue;
    }
    if (loss_cost(existing, request.may_drain) != kBusyCost) {
      continue;
    }
    const bool contains = std::any_of(layout.begin(), layout.end(), [&](const auto& placed) {
      return part.profile(placed.profile).id == existing.instance.profile_id &&
             placed.start == existing.instance.placement.start;
    });
    if (!contains) {
      return false;
    }
  }
  return true;
}

bool too_many_with_kept(const PlanRequest& request, const Counts& counts) {
  if (request.policy != ExistingPolicy::kKeep) {
    return false;
  }
  for (std::size_t p = 0; p < counts.size(); ++p) {
    const auto same = std::count_if(
        request.existing.begin(), request.existing.end(), [&](const ExistingInstance& existing) {
          return existing.instance.profile_id == request.space.profile(p).id;
        });
    if (counts[p] + static_cast<unsigned>(same) > request.space.profile(p).max_instances) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> nearest_alternatives(const PlanRequest& request) {
  std::vector<std::size_t> to_full = worth_proposing(request);
  std::vector<gpu::GpuInstanceProfile> profiles;
  for (const std::size_t p : to_full) {
    profiles.push_back(request.space.profile(p));
  }
  auto part = LayoutSpace::create(std::move(profiles));
  if (!part.ok()) {
    return {};
  }
  std::map<Counts, Distance> candidates;
  for_each_layout(*part, [&](const std::vector<PlacedProfile>& layout, UnitMask used) {
    Counts counts(request.space.profiles().size(), 0);
    if (!layout.empty() && accept_existing(request, *part, layout, used, counts, to_full) &&
        !too_many_with_kept(request, counts) && !candidates.contains(counts)) {
      candidates.emplace(counts, distance_to(request, counts));
    }
  });
  std::vector<std::pair<Distance, std::string>> ranked;
  for (const auto& [counts, distance] : candidates) {
    ranked.emplace_back(distance, want_text(request.space, counts));
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> result;
  for (std::size_t i = 0; i < std::min(ranked.size(), kMostAlternatives); ++i) {
    result.push_back(ranked[i].second);
  }
  return result;
}

}  // namespace septet::partition
