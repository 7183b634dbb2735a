#include "gpu/simulated_instances.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/prng.h"
#include "gpu/placement_policy.h"

namespace septet::gpu {
namespace {

constexpr unsigned kMaxComputeInstances = 8;

std::vector<Placement> spans_of(const std::vector<GpuInstance>& instances) {
  std::vector<Placement> taken;
  for (const GpuInstance& instance : instances) {
    taken.push_back(instance.placement);
  }
  return taken;
}

std::vector<Placement> spans_of(const std::vector<ComputeInstance>& instances) {
  std::vector<Placement> taken;
  for (const ComputeInstance& instance : instances) {
    taken.push_back(instance.placement);
  }
  return taken;
}

// The profile by the id that this GPU reports.
const GpuInstanceProfile* by_id(const std::vector<GpuInstanceProfile>& profiles, ProfileId id) {
  const auto found = std::find_if(profiles.begin(), profiles.end(),
                                  [&](const auto& profile) { return profile.id == id; });
  return found == profiles.end() ? nullptr : &*found;
}

// The count that is enforced, which a misreporting GPU does not say.
unsigned enforced_max(const SimulatedGpu& gpu, const GpuInstanceProfile& profile) {
  for (const GpuInstanceProfile& known : model_of(gpu).profiles) {
    if (known.nvml_enum == profile.nvml_enum) {
      return known.max_instances;
    }
  }
  return 0;
}

unsigned count_of(const SimulatedGpu& gpu, ProfileId id) {
  return static_cast<unsigned>(
      std::count_if(gpu.instances.begin(), gpu.instances.end(),
                    [&](const GpuInstance& instance) { return instance.profile_id == id; }));
}

bool engines_allow(const SimulatedGpu& gpu, const std::vector<GpuInstanceProfile>& profiles,
                   const GpuInstanceProfile& wanted) {
  std::vector<const GpuInstanceProfile*> chosen = {&wanted};
  for (const GpuInstance& instance : gpu.instances) {
    chosen.push_back(by_id(profiles, instance.profile_id));
  }
  return media_engines_suffice(profiles, chosen);
}

// Whether its count, the engines and at least one span allow one more.
bool admits(const SimulatedGpu& gpu, const std::vector<GpuInstanceProfile>& profiles,
            const GpuInstanceProfile& profile) {
  return count_of(gpu, profile.id) < enforced_max(gpu, profile) &&
         engines_allow(gpu, profiles, profile);
}

std::optional<Placement> choose_span(const SimulatedGpu& gpu,
                                     const std::vector<GpuInstanceProfile>& profiles,
                                     const GpuInstanceProfile& profile) {
  const std::vector<Placement> taken = spans_of(gpu.instances);
  const std::vector<Placement> free = free_spans(profile.placements, taken);
  if (free.empty()) {
    return std::nullopt;
  }
  std::vector<Placement> all;
  for (const GpuInstanceProfile& other : profiles) {
    all.insert(all.end(), other.placements.begin(), other.placements.end());
  }
  switch (gpu.config.placement) {
    case PlacementPolicy::kFirst:
      return free.front();
    case PlacementPolicy::kLast:
      return free.back();
    case PlacementPolicy::kRandom:
      return free[Prng(gpu.config.seed + gpu.created_gpu_instances).below(free.size())];
    case PlacementPolicy::kR450:
      if (profile.slices == 3 && free.front().start == 0) {
        return free.front();
      }
      return least_harmful_span(profile.placements, taken, all);
    case PlacementPolicy::kDriver:
      return least_harmful_span(profile.placements, taken, all);
  }
  return std::nullopt;
}

GpuInstanceId instance_id_for(const SimulatedGpu& gpu, const Placement& span) {
  const GpuModel& model = model_of(gpu);
  if (model.instance_id_map == GpuInstanceIdMap::kRunning) {
    unsigned id = 1;
    while (find_instance(gpu, GpuInstanceId(id)) != nullptr) {
      ++id;
    }
    return GpuInstanceId(id);
  }
  const unsigned parts = model.placement_units / span.size;
  const unsigned base = parts - 1;  // 0, 1, 3, 7 for whole, halves, quarters, eighths
  unsigned start = span.start;
  if (model.instance_id_map == GpuInstanceIdMap::kHalvesSwapped && parts > 1) {
    start = (start + model.placement_units / 2) % model.placement_units;
  }
  return GpuInstanceId(base + start / span.size);
}

template <typename T, typename Id>
void insert_by_id(std::vector<T>& instances, T instance, Id id) {
  const auto place = std::find_if(instances.begin(), instances.end(),
                                  [&](const T& other) { return id < other.id; });
  instances.insert(place, std::move(instance));
}

// What keeps NVML from working on instances now; success when nothing does.
NvmlCode instances_available(const SimulatedGpu& gpu) {
  if (gpu.lost) {
    return NvmlCode::kGpuIsLost;
  }
  return gpu.mig_current ? NvmlCode::kSuccess : NvmlCode::kNotSupported;
}

}  // namespace

std::optional<unsigned> remaining_capacity(const SimulatedGpu& gpu, ProfileId id) {
  const auto profiles = profiles_of(gpu);
  const GpuInstanceProfile* profile = by_id(profiles, id);
  if (profile == nullptr) {
    return std::nullopt;
  }
  if (!admits(gpu, profiles, *profile)) {
    return 0;
  }
  const auto free = free_spans(profile->placements, spans_of(gpu.instances));
  return std::min(count_disjoint(free), enforced_max(gpu, *profile) - count_of(gpu, id));
}

NvmlCode create_gpu_instance(SimulatedGpu& gpu, ProfileId id, std::optional<Placement> placement,
                             GpuInstance& created) {
  if (const NvmlCode code = instances_available(gpu); code != NvmlCode::kSuccess) {
    return code;
  }
  const auto profiles = profiles_of(gpu);
  const GpuInstanceProfile* profile = by_id(profiles, id);
  if (profile == nullptr) {
    return NvmlCode::kInvalidArgument;
  }
  const auto& legal = profile->placements;
  if (placement && std::find(legal.begin(), legal.end(), *placement) == legal.end()) {
    return NvmlCode::kInvalidArgument;
  }
  if (!admits(gpu, profiles, *profile)) {
    return NvmlCode::kInsufficientResources;
  }
  if (!placement) {
    placement = choose_span(gpu, profiles, *profile);
  }
  if (!placement || !is_free(*placement, spans_of(gpu.instances))) {
    return NvmlCode::kInsufficientResources;
  }
  created = GpuInstance{instance_id_for(gpu, *placement), id, *placement, {}};
  ++gpu.created_gpu_instances;
  insert_by_id(gpu.instances, created, created.id);
  return NvmlCode::kSuccess;
}

NvmlCode destroy_gpu_instance(SimulatedGpu& gpu, GpuInstanceId id) {
  if (const NvmlCode code = instances_available(gpu); code != NvmlCode::kSuccess) {
    return code;
  }
  const GpuInstance* instance = find_instance(gpu, id);
  if (instance == nullptr) {
    return NvmlCode::kNotFound;
  }
  const bool is_held = std::any_of(gpu.clients.begin(), gpu.clients.end(), [&](const auto& client) {
    return client.gpu_instance == id.value();
  });
  if (!instance->compute_instances.empty() || is_held) {
    return NvmlCode::kInUse;
  }
  std::erase_if(gpu.instances, [&](const GpuInstance& other) { return other.id == id; });
  return NvmlCode::kSuccess;
}

std::vector<ComputeInstanceProfile> compute_profiles_of(const SimulatedGpu& gpu,
                                                        const GpuInstance& instance) {
  const auto profiles = profiles_of(gpu);
  const GpuInstanceProfile* profile = by_id(profiles, instance.profile_id);
  CHECK(profile != nullptr);
  return compute_profiles(model_of(gpu), *profile);
}

std::vector<Placement> compute_placements(const SimulatedGpu& gpu, const GpuInstance& instance,
                                          ProfileId id) {
  const auto profiles = compute_profiles_of(gpu, instance);
  std::vector<Placement> spans;
  for (const ComputeInstanceProfile& profile : profiles) {
    if (profile.id != id) {
      continue;
    }
    // Spans are aligned as the open kernel driver's compute spans are: three slices take a span of
    // four's start.
    const unsigned total = by_id(profiles_of(gpu), instance.profile_id)->slices;
    const unsigned step = profile.slices == 3 ? 4 : profile.slices;
    for (unsigned start = 0; start + profile.slices <= total; start += step) {
      spans.push_back({start, profile.slices});
    }
  }
  return spans;
}

std::optional<unsigned> remaining_compute_capacity(const SimulatedGpu& gpu,
                                                   const GpuInstance& instance, ProfileId id) {
  for (const ComputeInstanceProfile& profile : compute_profiles_of(gpu, instance)) {
    if (profile.id != id) {
      continue;
    }
    const auto& existing = instance.compute_instances;
    const auto same = static_cast<unsigned>(
        std::count_if(existing.begin(), existing.end(),
                      [&](const ComputeInstance& other) { return other.profile_id == id; }));
    const auto free = free_spans(compute_placements(gpu, instance, id), spans_of(existing));
    return same >= profile.max_instances
               ? 0
               : std::min(count_disjoint(free), profile.max_instances - same);
  }
  return std::nullopt;
}

NvmlCode create_compute_instance(SimulatedGpu& gpu, GpuInstanceId instance_id, ProfileId profile,
                                 std::optional<Placement> placement, ComputeInstance& created) {
  if (const NvmlCode code = instances_available(gpu); code != NvmlCode::kSuccess) {
    return code;
  }
  const auto instance = std::find_if(gpu.instances.begin(), gpu.instances.end(),
                                     [&](const GpuInstance& g) { return g.id == instance_id; });
  if (instance == gpu.instances.end()) {
    return NvmlCode::kNotFound;
  }
  const auto capacity = remaining_compute_capacity(gpu, *instance, profile);
  const auto legal = compute_placements(gpu, *instance, profile);
  if (!capacity ||
      (placement && std::find(legal.begin(), legal.end(), *placement) == legal.end())) {
    return NvmlCode::kInvalidArgument;
  }
  auto& existing = instance->compute_instances;
  const auto taken = spans_of(existing);
  if (!placement) {
    std::vector<Placement> all;
    for (const ComputeInstanceProfile& other : compute_profiles_of(gpu, *instance)) {
      const auto spans = compute_placements(gpu, *instance, other.id);
      all.insert(all.end(), spans.begin(), spans.end());
    }
    placement = least_harmful_span(legal, taken, all);
  }
  if (*capacity == 0 || !placement || !is_free(*placement, taken)) {
    return NvmlCode::kInsufficientResources;
  }
  unsigned id = 0;
  while (std::any_of(existing.begin(), existing.end(),
                     [&](const ComputeInstance& c) { return c.id.value() == id; })) {
    ++id;
  }
  CHECK(id < kMaxComputeInstances);
  ++gpu.created_compute_instances;
  const std::string uuid = seeded_uuid(gpu.config.seed, gpu.config.index, gpu.created_gpu_instances,
                                       gpu.created_compute_instances);
  created = ComputeInstance{ComputeInstanceId(id), profile, *placement, MigUuid("MIG-" + uuid)};
  insert_by_id(existing, created, created.id);
  return NvmlCode::kSuccess;
}

NvmlCode destroy_compute_instance(SimulatedGpu& gpu, GpuInstanceId instance_id,
                                  ComputeInstanceId id) {
  if (const NvmlCode code = instances_available(gpu); code != NvmlCode::kSuccess) {
    return code;
  }
  for (GpuInstance& instance : gpu.instances) {
    if (instance.id != instance_id) {
      continue;
    }
    const bool is_held = std::any_of(gpu.clients.begin(), gpu.clients.end(), [&](const auto& c) {
      return c.gpu_instance == instance_id.value() && c.compute_instance == id.value();
    });
    if (is_held) {
      return NvmlCode::kInUse;
    }
    const auto erased = std::erase_if(instance.compute_instances,
                                      [&](const ComputeInstance& c) { return c.id == id; });
    return erased == 0 ? NvmlCode::kNotFound : NvmlCode::kSuccess;
  }
  return NvmlCode::kNotFound;
}

std::string mig_device_name(const SimulatedGpu& gpu, GpuInstanceId instance_id,
                            ComputeInstanceId compute_id) {
  const GpuInstance* instance = find_instance(gpu, instance_id);
  if (instance == nullptr) {
    return "";
  }
  for (const ComputeInstance& compute : instance->compute_instances) {
    if (compute.id != compute_id) {
      continue;
    }
    for (const ComputeInstanceProfile& profile : compute_profiles_of(gpu, *instance)) {
      if (profile.id == compute.profile_id) {
        return profile.name;
      }
    }
  }
  return "";
}

std::string broken_invariant(const SimulatedGpu& gpu) {
  if (!gpu.mig_current && !gpu.instances.empty()) {
    return "instances with MIG off";
  }
  const auto profiles = profiles_of(gpu);
  std::vector<Placement> taken;
  for (const GpuInstance& instance : gpu.instances) {
    const GpuInstanceProfile* profile = by_id(profiles, instance.profile_id);
    if (profile == nullptr) {
      return fmt::format("GPU instance {} has no profile", instance.id.value());
    }
    const auto& legal = profile->placements;
    if (std::find(legal.begin(), legal.end(), instance.placement) == legal.end() ||
        !is_free(instance.placement, taken)) {
      return fmt::format("GPU instance {} at {}:{} overlaps or is not legal", instance.id.value(),
                         instance.placement.start, instance.placement.size);
    }
    if (count_of(gpu, instance.profile_id) > enforced_max(gpu, *profile)) {
      return fmt::format("more than {} of {}", enforced_max(gpu, *profile), profile->name);
    }
    taken.push_back(instance.placement);
    std::vector<Placement> slices;
    for (const ComputeInstance& compute : instance.compute_instances) {
      if (!is_free(compute.placement, slices) || compute.placement.end() > profile->slices) {
        return fmt::format("compute instance {} of GPU instance {} overlaps", compute.id.value(),
                           instance.id.value());
      }
      slices.push_back(compute.placement);
    }
  }
  return "";
}

}  // namespace septet::gpu
