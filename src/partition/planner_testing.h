// Helpers of the planner's tests: spaces of known models, layouts written as text.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "gpu/gpu_model.h"
#include "partition/planner.h"

namespace septet::partition {

inline LayoutSpace space_of(const std::string& model) {
  auto found = gpu::find_gpu_model(model);
  CHECK(found.ok());
  auto space = LayoutSpace::create((*found)->profiles);
  CHECK(space.ok());
  return *std::move(space);
}

inline PlanRequest request_for(const LayoutSpace& space, const std::vector<std::string>& words) {
  const auto want = parse_want(words);
  CHECK(want.ok());
  std::vector<std::string> notes;
  auto wishes = resolve_want(*want, space, notes);
  CHECK(wishes.ok());
  return {.space = space, .wishes = *std::move(wishes)};
}

// "3g.20gb@4 1g.5gb@0" with one whole compute instance each; ids are running numbers from 1.
inline std::vector<ExistingInstance> existing_layout(const LayoutSpace& space,
                                                     const std::string& text) {
  std::vector<ExistingInstance> result;
  const auto want = parse_want(std::vector<std::string>{text});
  CHECK(want.ok());
  std::vector<std::string> notes;
  const auto wishes = resolve_want(*want, space, notes);
  CHECK(wishes.ok());
  for (const Wish& wish : *wishes) {
    const gpu::GpuInstanceProfile& profile = space.profile(wish.profiles.front());
    ExistingInstance existing;
    existing.instance.id = gpu::GpuInstanceId(static_cast<unsigned>(result.size()) + 1);
    existing.instance.profile_id = profile.id;
    existing.instance.placement = {wish.start.value(), profile.placements.front().size};
    gpu::ComputeInstance compute;
    compute.placement = {0, profile.slices};
    existing.instance.compute_instances.push_back(compute);
    result.push_back(std::move(existing));
  }
  return result;
}

inline Plan planned(const PlanRequest& request) {
  PlanOutcome outcome = make_plan(request);
  if (const auto* why = std::get_if<Infeasible>(&outcome)) {
    ADD_FAILURE() << why->message;
    return {};
  }
  return std::get<Plan>(std::move(outcome));
}

inline Infeasible refused(const PlanRequest& request) {
  PlanOutcome outcome = make_plan(request);
  if (std::holds_alternative<Plan>(outcome)) {
    ADD_FAILURE() << "a plan was found";
    return {};
  }
  return std::get<Infeasible>(std::move(outcome));
}

// The layout after the plan, by start: "3g.20gb@0 2g.10gb@4".
inline std::string layout_text(const Plan& plan) {
  std::vector<std::pair<unsigned, std::string>> parts;
  for (const KeptInstance& kept : plan.keep) {
    parts.emplace_back(kept.instance.placement.start, kept.profile);
  }
  for (const CreatedInstance& created : plan.create) {
    parts.emplace_back(created.placement.start, created.profile);
  }
  std::sort(parts.begin(), parts.end());
  std::string text;
  for (const auto& [start, name] : parts) {
    text += (text.empty() ? "" : " ") + name + "@" + std::to_string(start);
  }
  return text;
}

}  // namespace septet::partition
