#include "partition/layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace septet::partition {
namespace {

void sort_layout(Layout& layout) {
  for (LayoutInstance& instance : layout.instances) {
    std::sort(instance.compute.rbegin(), instance.compute.rend());
  }
  std::sort(layout.instances.begin(), layout.instances.end(),
            [](const auto& a, const auto& b) { return a.placement.start < b.placement.start; });
}

std::string name_of(const gpu::GpuState& state, gpu::ProfileId id) {
  const auto found = std::find_if(state.profiles.begin(), state.profiles.end(),
                                  [&](const auto& profile) { return profile.id == id; });
  return found == state.profiles.end() ? fmt::format("profile {}", id.value()) : found->name;
}

}  // namespace

Layout layout_of(const gpu::GpuState& state) {
  Layout layout{.mode = state.mig_current, .instances = {}};
  for (const gpu::GpuInstance& instance : state.instances) {
    LayoutInstance entry{
        instance.profile_id, name_of(state, instance.profile_id), instance.placement, {}};
    for (const gpu::ComputeInstance& compute : instance.compute_instances) {
      entry.compute.push_back(compute.placement.size);
    }
    layout.instances.push_back(std::move(entry));
  }
  sort_layout(layout);
  return layout;
}

Layout layout_after(const Plan& plan) {
  Layout layout;
  for (const KeptInstance& kept : plan.keep) {
    LayoutInstance entry{kept.instance.profile_id, kept.profile, kept.instance.placement,
                         kept.compute.create};
    for (const gpu::ComputeInstance& compute : kept.instance.compute_instances) {
      const auto& gone = kept.compute.destroy;
      if (std::find(gone.begin(), gone.end(), compute.id) == gone.end()) {
        entry.compute.push_back(compute.placement.size);
      }
    }
    layout.instances.push_back(std::move(entry));
  }
  for (const CreatedInstance& created : plan.create) {
    layout.instances.push_back(
        {created.profile_id, created.profile, created.placement, created.compute});
  }
  sort_layout(layout);
  return layout;
}

std::string to_string(const Layout& layout) {
  if (layout.mode != gpu::MigMode::kEnabled) {
    return "MIG off";
  }
  if (layout.instances.empty()) {
    return "no instances";
  }
  std::vector<std::string> parts;
  for (const LayoutInstance& instance : layout.instances) {
    std::string part = fmt::format("{}@{}", instance.profile, instance.placement.start);
    const ProfileName name = parse_profile_name(instance.profile).value_or(ProfileName{});
    if (instance.compute.empty()) {
      part += "(no compute instance)";
    } else if (instance.compute != std::vector<unsigned>{name.slices}) {
      part += fmt::format("({}c)", fmt::join(instance.compute, "c "));
    }
    parts.push_back(std::move(part));
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

}  // namespace septet::partition
