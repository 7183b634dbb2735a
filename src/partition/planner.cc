#include "partition/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "partition/infeasible.h"
#include "partition/layout_search.h"
#include "partition/profile_choice.h"

namespace septet::partition {
namespace {

std::string profile_name(const LayoutSpace& space, gpu::ProfileId id) {
  const std::size_t index = space.index_of(id);
  return index < space.profiles().size() ? space.profile(index).name
                                         : fmt::format("profile {}", id.value());
}

std::string units_text(const gpu::Placement& placement) {
  return placement.size == 1 ? fmt::format("unit {}", placement.start)
                             : fmt::format("units {}-{}", placement.start, placement.end() - 1);
}

KeptInstance kept_instance(const PlanRequest& request, std::size_t existing,
                           ComputeChange compute) {
  const ExistingInstance& from = request.existing[existing];
  return {from.instance, profile_name(request.space, from.instance.profile_id), from.occupancy,
          std::move(compute)};
}

std::string reason_for(const gpu::Placement& placement,
                       const std::vector<CreatedInstance>& create) {
  const auto needs = std::find_if(
      create.begin(), create.end(),
      [&](const CreatedInstance& created) { return created.placement.overlaps(placement); });
  if (needs == create.end()) {
    return "not in the wanted layout";
  }
  return fmt::format("{} needed for {} at {}", units_text(placement), needs->profile,
                     needs->placement.start);
}

CreatedInstance created_instance(const LayoutSpace& space, const SearchChoice& choice,
                                 const Wish& wish) {
  const gpu::GpuInstanceProfile& profile = space.profile(choice.profile);
  const auto spot = std::find_if(
      profile.placements.begin(), profile.placements.end(),
      [&](const gpu::Placement& placement) { return placement.start == choice.start; });
  CreatedInstance created{profile.id, profile.name, *spot, wish.compute};
  if (created.compute.empty()) {
    created.compute = {profile.slices};
  }
  std::sort(created.compute.rbegin(), created.compute.rend());
  return created;
}

template <typename Instances>
void sort_by_start(Instances& instances) {
  std::sort(instances.begin(), instances.end(), [](const auto& a, const auto& b) {
    if constexpr (requires { a.instance; }) {
      return a.instance.placement.start < b.instance.placement.start;
    } else {
      return a.placement.start < b.placement.start;
    }
  });
}

void add_left_over(const LayoutSpace& space, UnitMask used, Plan& plan) {
  unsigned slices = 0;
  std::vector<unsigned> counts(space.profiles().size(), 0);
  const auto take = [&](gpu::ProfileId id) {
    const std::size_t index = space.index_of(id);
    if (index < counts.size()) {
      slices += space.profile(index).slices;
      ++counts[index];
    }
  };
  for (const KeptInstance& kept : plan.keep) {
    take(kept.instance.profile_id);
  }
  for (const CreatedInstance& created : plan.create) {
    take(created.profile_id);
  }
  plan.unused_units = space.units() - static_cast<unsigned>(std::popcount(used));
  plan.unused_slices = space.compute_slices() - std::min(slices, space.compute_slices());
  for (std::size_t p = 0; p < counts.size(); ++p) {
    plan.remaining.push_back(space.remaining(p, used, counts[p]));
  }
}

Plan plan_from(const PlanRequest& request, const SearchResult& result) {
  Plan plan;
  std::vector<bool> kept(request.existing.size(), request.policy == ExistingPolicy::kKeep);
  for (std::size_t w = 0; w < request.wishes.size(); ++w) {
    const SearchChoice& choice = result.choices[w];
    if (choice.existing) {
      kept[*choice.existing] = true;
      plan.keep.push_back(kept_instance(request, *choice.existing, choice.compute));
    } else {
      plan.create.push_back(created_instance(request.space, choice, request.wishes[w]));
    }
  }
  for (std::size_t e = 0; e < request.existing.size(); ++e) {
    if (request.policy == ExistingPolicy::kKeep) {
      plan.keep.push_back(kept_instance(request, e, {}));
    } else if (!kept[e]) {
      const ExistingInstance& lost = request.existing[e];
      plan.destroy.push_back({lost.instance, profile_name(request.space, lost.instance.profile_id),
                              lost.occupancy, reason_for(lost.instance.placement, plan.create)});
    }
  }
  sort_by_start(plan.keep);
  sort_by_start(plan.destroy);
  sort_by_start(plan.create);
  add_left_over(request.space, result.used, plan);
  return plan;
}

// "1c.3g.20gb:5" is one wish for every GPU instance that is needed to hold five.
void add_compute_wishes(const ProfileChoice& choice, const WantItem& item, const LayoutSpace& space,
                        std::vector<Wish>& wishes) {
  const unsigned per_instance = std::max(
      1U, most_compute(space.profile(choice.profiles.front()).slices, choice.compute_slices));
  for (unsigned left = item.count; left > 0;) {
    const unsigned here = std::min(left, per_instance);
    wishes.push_back({choice.profiles, item.start,
                      std::vector<unsigned>(here, choice.compute_slices), item.profile.text});
    left -= here;
  }
}

}  // namespace

bool Plan::changes_nothing() const {
  return destroy.empty() && create.empty() &&
         std::all_of(keep.begin(), keep.end(),
                     [](const KeptInstance& kept) { return kept.compute == ComputeChange{}; });
}

const char* to_string(Constraint constraint) {
  switch (constraint) {
    case Constraint::kIllegalStart:
      return "illegal_start";
    case Constraint::kTooManyOfProfile:
      return "too_many_of_profile";
    case Constraint::kComputeInstances:
      return "compute_instances";
    case Constraint::kComputeSlices:
      return "compute_slices";
    case Constraint::kUnits:
      return "placement_units";
    case Constraint::kPlacementRules:
      return "placement_rules";
    case Constraint::kBusyInstances:
      return "busy_instances";
    case Constraint::kExistingInstances:
      return "existing_instances";
  }
  return "unknown";
}

PlanOutcome make_plan(const PlanRequest& request) {
  if (const auto result = search_layout(request)) {
    return plan_from(request, *result);
  }
  return explain_infeasible(request);
}

Result<std::vector<Wish>> resolve_want(const Want& want, const LayoutSpace& space,
                                       std::vector<std::string>& notes) {
  std::vector<Wish> wishes;
  for (const WantItem& item : want.items) {
    auto choice = choose_profiles(item.profile, space.profiles());
    SEPTET_TRY(choice);
    if (!choice->note.empty()) {
      notes.push_back(choice->note);
    }
    if (choice->compute_slices != 0) {
      add_compute_wishes(*choice, item, space, wishes);
      continue;
    }
    for (unsigned i = 0; i < item.count; ++i) {
      wishes.push_back({choice->profiles, item.start, {}, item.profile.text});
    }
  }
  return wishes;
}

}  // namespace septet::partition
