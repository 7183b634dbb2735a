#include "partition/infeasible.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"
#include "partition/alternatives.h"
#include "partition/layout_search.h"

namespace septet::partition {
namespace {

std::string starts_text(const LayoutSpace& space, std::size_t profile) {
  std::vector<std::string> starts;
  for (const LayoutSpace::Spot& spot : space.spots(profile)) {
    starts.push_back(fmt::format("{}", spot.start));
  }
  return join_words(starts);
}

bool can_start(const LayoutSpace& space, const Wish& wish) {
  return !wish.start || std::any_of(wish.profiles.begin(), wish.profiles.end(), [&](std::size_t p) {
    const auto& spots = space.spots(p);
    return std::any_of(spots.begin(), spots.end(),
                       [&](const auto& spot) { return spot.start == *wish.start; });
  });
}

std::optional<Infeasible> illegal_start(const PlanRequest& request) {
  for (const Wish& wish : request.wishes) {
    if (!can_start(request.space, wish)) {
      const std::size_t profile = wish.profiles.front();
      return Infeasible{Constraint::kIllegalStart,
                        fmt::format("{} cannot start at unit {}",
                                    request.space.profile(profile).name, *wish.start),
                        fmt::format("it may start at {}", starts_text(request.space, profile)),
                        {}};
    }
  }
  return std::nullopt;
}

std::optional<Infeasible> compute_misfit(const PlanRequest& request) {
  for (const Wish& wish : request.wishes) {
    const gpu::GpuInstanceProfile& profile = request.space.profile(wish.profiles.front());
    if (!wish.compute.empty() && !compute_fits(profile.slices, wish.compute)) {
      return Infeasible{
          Constraint::kComputeInstances,
          fmt::format("a {} holds no compute instances of {} slices", profile.name,
                      fmt::join(wish.compute, ", ")),
          "inside a GPU instance of g slices one takes all of them or at most half, rounded up",
          {}};
    }
  }
  return std::nullopt;
}

std::optional<Infeasible> too_many(const PlanRequest& request) {
  std::map<std::size_t, unsigned> counts;
  for (const Wish& wish : request.wishes) {
    if (wish.profiles.size() == 1) {
      ++counts[wish.profiles.front()];
    }
  }
  for (const auto& [p, count] : counts) {
    const gpu::GpuInstanceProfile& profile = request.space.profile(p);
    if (count > profile.max_instances) {
      return Infeasible{Constraint::kTooManyOfProfile,
                        fmt::format("{} x {}: this GPU holds at most {}", count, profile.name,
                                    profile.max_instances),
                        {},
                        {}};
    }
  }
  return std::nullopt;
}

// The least slices and units that the wishes need.
struct Need {
  unsigned slices = 0;
  unsigned units = 0;
};

Need least_need(const PlanRequest& request) {
  Need need;
  for (const Wish& wish : request.wishes) {
    unsigned slices = request.space.compute_slices();
    unsigned units = request.space.units();
    for (const std::size_t p : wish.profiles) {
      const gpu::GpuInstanceProfile& profile = request.space.profile(p);
      slices = std::min(slices, profile.slices);
      units = std::min(units, profile.placements.empty() ? units : profile.placements[0].size);
    }
    need.slices += slices;
    need.units += units;
  }
  return need;
}

PlanRequest on_empty_gpu(const PlanRequest& request, std::vector<Wish> wishes) {
  return {.space = request.space, .existing = {}, .wishes = std::move(wishes)};
}

// A smallest part of the wishes that already cannot stand together.
std::vector<Wish> smallest_conflict(const PlanRequest& request) {
  std::vector<Wish> wishes = request.wishes;
  for (std::size_t i = 0; i < wishes.size();) {
    std::vector<Wish> fewer = wishes;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (search_layout(on_empty_gpu(request, fewer))) {
      ++i;
    } else {
      wishes = std::move(fewer);
    }
  }
  return wishes;
}

Infeasible placement_conflict(const PlanRequest& request) {
  std::vector<std::string> names;
  std::map<std::string, std::string> rules;
  for (const Wish& wish : smallest_conflict(request)) {
    const std::size_t p = wish.profiles.front();
    const std::string name = wish.profiles.size() == 1 ? request.space.profile(p).name : wish.text;
    names.push_back(wish.start ? fmt::format("{}@{}", name, *wish.start) : name);
    if (wish.profiles.size() == 1) {
      rules[name] =
          fmt::format("{} takes {} units and starts at {}", name,
                      request.space.profile(p).placements[0].size, starts_text(request.space, p));
    }
  }
  std::vector<std::string> sentences;
  for (const auto& [name, rule] : rules) {
    sentences.push_back(rule);
  }
  return {Constraint::kPlacementRules,
          fmt::format("{} cannot stand side by side: {}", join_words(names),
                      fmt::join(sentences, "; ")),
          {},
          {}};
}

std::string existing_text(const PlanRequest& request, const ExistingInstance& existing) {
  const std::size_t p = request.space.index_of(existing.instance.profile_id);
  const std::string name =
      p < request.space.profiles().size() ? request.space.profile(p).name : "?";
  const std::string text = fmt::format("{}@{}", name, existing.instance.placement.start);
  return existing.holder.empty() ? text : fmt::format("{} held by {}", text, existing.holder);
}

Infeasible blocked_by_busy(const PlanRequest& request) {
  std::vector<std::string> names;
  for (const ExistingInstance& existing : request.existing) {
    if (loss_cost(existing, request.may_drain) == kBusyCost) {
      names.push_back(existing_text(request, existing));
    }
  }
  return {Constraint::kBusyInstances,
          fmt::format("the wanted layout has no room beside or no place for what is busy: {}",
                      join_words(names)),
          "wait until it is free, or let it leave with --drain SECONDS",
          {}};
}

Infeasible blocked_by_existing(const PlanRequest& request) {
  std::vector<std::string> names;
  PlanRequest moved{.space = request.space,
                    .existing = request.existing,
                    .wishes = request.wishes,
                    .may_drain = request.may_drain};
  for (const ExistingInstance& existing : request.existing) {
    names.push_back(existing_text(request, existing));
    const std::size_t p = request.space.index_of(existing.instance.profile_id);
    if (p < request.space.profiles().size()) {
      moved.wishes.push_back({{p}, std::nullopt, {}, request.space.profile(p).name});
    }
  }
  return {Constraint::kExistingInstances,
          fmt::format("no room beside what exists: {}", join_words(names)),
          search_layout(moved) ? "it fits when idle instances may move: add --move"
                               : "it does not fit with all of these: name the whole layout instead",
          {}};
}

Infeasible empty_gpu_conflict(const PlanRequest& request) {
  const Need need = least_need(request);
  if (need.slices > request.space.compute_slices()) {
    return {Constraint::kComputeSlices,
            fmt::format("this needs {} compute slices and the GPU has {}", need.slices,
                        request.space.compute_slices()),
            {},
            {}};
  }
  if (need.units > request.space.units()) {
    return {Constraint::kUnits,
            fmt::format("this needs {} placement units of memory and the GPU has {}", need.units,
                        request.space.units()),
            {},
            {}};
  }
  return placement_conflict(request);
}

Infeasible find_constraint(const PlanRequest& request) {
  if (auto found = illegal_start(request)) {
    return *std::move(found);
  }
  if (auto found = compute_misfit(request)) {
    return *std::move(found);
  }
  if (auto found = too_many(request)) {
    return *std::move(found);
  }
  if (!search_layout(on_empty_gpu(request, request.wishes))) {
    return empty_gpu_conflict(request);
  }
  return request.policy == ExistingPolicy::kKeep ? blocked_by_existing(request)
                                                 : blocked_by_busy(request);
}

}  // namespace

Infeasible explain_infeasible(const PlanRequest& request) {
  Infeasible infeasible = find_constraint(request);
  infeasible.alternatives = nearest_alternatives(request);
  return infeasible;
}

}  // namespace septet::partition
