// Compute instances, and the attributes of the MIG device that each of them makes.
#include <algorithm>

#include "gpu/simulated_instances.h"
#include "library.h"

using namespace septet::simnvml;  // NOLINT: the C interface lives outside
namespace gpu = septet::gpu;

namespace {

const gpu::GpuInstance& instance_of(const CallContext& call) {
  // library().call() has seen that it is there.
  return *find_instance(call.gpu, gpu::GpuInstanceId(call.handle.gpu_instance));
}

const gpu::ComputeInstance* compute_of(const CallContext& call) {
  for (const auto& compute : instance_of(call).compute_instances) {
    if (compute.id.value() == call.handle.compute_instance) {
      return &compute;
    }
  }
  return nullptr;
}

abi::ComputeInstance compute_handle(const CallContext& call, gpu::ComputeInstanceId id) {
  return static_cast<abi::ComputeInstance>(to_pointer(
      {HandleKind::kComputeInstance, call.gpu.config.index, call.handle.gpu_instance, id.value()}));
}

template <typename F>
abi::Return with_instance(std::string_view function, Access access, abi::GpuInstance instance,
                          F work) {
  return library().call(function, access, instance, [&](CallContext& call) {
    return call.handle.kind == HandleKind::kGpuInstance ? work(call) : NvmlCode::kInvalidArgument;
  });
}

NvmlCode find_by_enum(const CallContext& call, unsigned nvml_enum, unsigned engine_profile,
                      gpu::ComputeInstanceProfile& found) {
  if (nvml_enum >= abi::kComputeInstanceProfileCount || engine_profile != 0) {
    return NvmlCode::kInvalidArgument;
  }
  for (const auto& profile : compute_profiles_of(call.gpu, instance_of(call))) {
    if (profile.nvml_enum == nvml_enum) {
      found = profile;
      return NvmlCode::kSuccess;
    }
  }
  return NvmlCode::kNotSupported;
}

abi::ComputeInstanceProfileInfo info_of(const gpu::ComputeInstanceProfile& profile) {
  return {profile.id.value(),           profile.slices,
          profile.max_instances,        profile.engines.multiprocessors,
          profile.engines.copy_engines, profile.engines.decoders,
          profile.engines.encoders,     profile.engines.jpeg,
          profile.engines.ofa};
}

template <typename T>
NvmlCode answer_version(void* out, const gpu::ComputeInstanceProfile& profile) {
  T* info = static_cast<T*>(out);
  info->v1 = info_of(profile);
  return copy_text("MIG " + profile.name, info->name, sizeof info->name);
}

abi::Return create(std::string_view function, abi::GpuInstance instance, unsigned profile,
                   const abi::Placement* placement, abi::ComputeInstance* out) {
  return with_instance(function, Access::kWrite, instance, [&](CallContext& call) {
    if (out == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    std::optional<gpu::Placement> place;
    if (placement != nullptr) {
      place = gpu::Placement{placement->start, placement->size};
    }
    gpu::ComputeInstance created;
    const NvmlCode code =
        create_compute_instance(call.gpu, gpu::GpuInstanceId(call.handle.gpu_instance),
                                gpu::ProfileId(profile), place, created);
    if (code == NvmlCode::kSuccess) {
      *out = compute_handle(call, created.id);
    }
    return code;
  });
}

abi::Return compute_info(abi::ComputeInstance instance, abi::ComputeInstanceInfo* info) {
  return library().call("ComputeInstanceGetInfo", Access::kRead, instance, [&](CallContext& call) {
    if (info == nullptr || call.handle.kind != HandleKind::kComputeInstance) {
      return NvmlCode::kInvalidArgument;
    }
    const gpu::ComputeInstance* compute = compute_of(call);
    const Handle parent{HandleKind::kGpuInstance, call.handle.gpu, call.handle.gpu_instance, 0};
    *info = {device_handle(call.handle.gpu),
             static_cast<abi::GpuInstance>(to_pointer(parent)),
             compute->id.value(),
             compute->profile_id.value(),
             {compute->placement.start, compute->placement.size}};
    return NvmlCode::kSuccess;
  });
}

}  // namespace

SEPTET_NVML nvmlGpuInstanceGetComputeInstanceProfileInfo(abi::GpuInstance instance,
                                                         unsigned nvml_enum, unsigned engines,
                                                         abi::ComputeInstanceProfileInfo* info) {
  return with_instance(
      "GpuInstanceGetComputeInstanceProfileInfo", Access::kRead, instance, [&](CallContext& call) {
        gpu::ComputeInstanceProfile profile;
        const NvmlCode code = info == nullptr ? NvmlCode::kInvalidArgument
                                              : find_by_enum(call, nvml_enum, engines, profile);
        if (code == NvmlCode::kSuccess) {
          *info = info_of(profile);
        }
        return code;
      });
}

SEPTET_NVML nvmlGpuInstanceGetComputeInstanceProfileInfoV(abi::GpuInstance instance,
                                                          unsigned nvml_enum, unsigned engines,
                                                          std::uint32_t* info) {
  return with_instance(
      "GpuInstanceGetComputeInstanceProfileInfoV", Access::kRead, instance, [&](CallContext& call) {
        gpu::ComputeInstanceProfile profile;
        const NvmlCode code = info == nullptr ? NvmlCode::kInvalidArgument
                                              : find_by_enum(call, nvml_enum, engines, profile);
        if (code != NvmlCode::kSuccess) {
          return code;
        }
        if (*info == abi::version_of(2, sizeof(abi::ComputeInstanceProfileInfoV2))) {
          return answer_version<abi::ComputeInstanceProfileInfoV2>(info, profile);
        }
        if (*info == abi::version_of(3, sizeof(abi::ComputeInstanceProfileInfoV3))) {
          void* out = info;
          static_cast<abi::ComputeInstanceProfileInfoV3*>(out)->capabilities = 0;
          return answer_version<abi::ComputeInstanceProfileInfoV3>(info, profile);
        }
        return NvmlCode::kArgumentVersionMismatch;
      });
}

SEPTET_NVML nvmlGpuInstanceGetComputeInstanceRemainingCapacity(abi::GpuInstance instance,
                                                               unsigned profile, unsigned* count) {
  return with_instance("GpuInstanceGetComputeInstanceRemainingCapacity", Access::kRead, instance,
                       [&](CallContext& call) {
                         const auto left = remaining_compute_capacity(call.gpu, instance_of(call),
                                                                      gpu::ProfileId(profile));
                         if (!left || count == nullptr) {
                           return NvmlCode::kInvalidArgument;
                         }
                         *count = *left;
                         return NvmlCode::kSuccess;
                       });
}

SEPTET_NVML nvmlGpuInstanceGetComputeInstancePossiblePlacements(abi::GpuInstance instance,
                                                                unsigned profile,
                                                                abi::Placement* out,
                                                                unsigned* count) {
  return with_instance("GpuInstanceGetComputeInstancePossiblePlacements", Access::kRead, instance,
                       [&](CallContext& call) {
                         const auto spans = compute_placements(call.gpu, instance_of(call),
                                                               gpu::ProfileId(profile));
                         if (spans.empty()) {
                           return NvmlCode::kInvalidArgument;
                         }
                         return copy_list(spans, out, count, [](const gpu::Placement& span) {
                           return abi::Placement{span.start, span.size};
                         });
                       });
}

SEPTET_NVML nvmlGpuInstanceGetComputeInstances(abi::GpuInstance instance, unsigned profile,
                                               abi::ComputeInstance* out, unsigned* count) {
  return with_instance(
      "GpuInstanceGetComputeInstances", Access::kRead, instance, [&](CallContext& call) {
        std::vector<gpu::ComputeInstance> matching;
        for (const auto& compute : instance_of(call).compute_instances) {
          if (compute.profile_id.value() == profile) {
            matching.push_back(compute);
          }
        }
        return copy_list(matching, out, count, [&](const gpu::ComputeInstance& compute) {
          return compute_handle(call, compute.id);
        });
      });
}

SEPTET_NVML nvmlGpuInstanceGetComputeInstanceById(abi::GpuInstance instance, unsigned id,
                                                  abi::ComputeInstance* out) {
  return with_instance(
      "GpuInstanceGetComputeInstanceById", Access::kRead, instance, [&](CallContext& call) {
        const auto& all = instance_of(call).compute_instances;
        const bool exists = std::any_of(all.begin(), all.end(),
                                        [&](const auto& other) { return other.id.value() == id; });
        if (!exists || out == nullptr) {
          return exists ? NvmlCode::kInvalidArgument : NvmlCode::kNotFound;
        }
        *out = compute_handle(call, gpu::ComputeInstanceId(id));
        return NvmlCode::kSuccess;
      });
}

SEPTET_NVML nvmlGpuInstanceCreateComputeInstance(abi::GpuInstance instance, unsigned profile,
                                                 abi::ComputeInstance* out) {
  return create("GpuInstanceCreateComputeInstance", instance, profile, nullptr, out);
}

SEPTET_NVML nvmlGpuInstanceCreateComputeInstanceWithPlacement(abi::GpuInstance instance,
                                                              unsigned profile,
                                                              const abi::Placement* placement,
                                                              abi::ComputeInstance* out) {
  if (placement == nullptr) {
    return static_cast<abi::Return>(NvmlCode::kInvalidArgument);
  }
  return create("GpuInstanceCreateComputeInstanceWithPlacement", instance, profile, placement, out);
}

SEPTET_NVML nvmlComputeInstanceGetInfo(abi::ComputeInstance instance,
                                       abi::ComputeInstanceInfo* info) {
  return compute_info(instance, info);
}
SEPTET_NVML nvmlComputeInstanceGetInfo_v2(abi::ComputeInstance instance,
                                          abi::ComputeInstanceInfo* info) {
  return compute_info(instance, info);
}

SEPTET_NVML nvmlComputeInstanceDestroy(abi::ComputeInstance instance) {
  return library().call("ComputeInstanceDestroy", Access::kWrite, instance, [&](CallContext& call) {
    if (call.handle.kind != HandleKind::kComputeInstance) {
      return NvmlCode::kInvalidArgument;
    }
    return destroy_compute_instance(call.gpu, gpu::GpuInstanceId(call.handle.gpu_instance),
                                    gpu::ComputeInstanceId(call.handle.compute_instance));
  });
}

SEPTET_NVML nvmlDeviceGetAttributes_v2(abi::Device device, abi::DeviceAttributes* attributes) {
  return library().call("DeviceGetAttributes", Access::kRead, device, [&](CallContext& call) {
    if (attributes == nullptr || call.handle.kind != HandleKind::kMigDevice) {
      return attributes == nullptr ? NvmlCode::kInvalidArgument : NvmlCode::kNotSupported;
    }
    const auto& instance = instance_of(call);
    const auto* compute = compute_of(call);
    for (const auto& profile : compute_profiles_of(call.gpu, instance)) {
      if (profile.id == compute->profile_id) {
        attributes->multiprocessor_count = profile.engines.multiprocessors;
        attributes->compute_instance_slice_count = profile.slices;
      }
    }
    for (const auto& profile : profiles_of(call.gpu)) {
      if (profile.id == instance.profile_id) {
        attributes->copy_engine_count = profile.engines.copy_engines;
        attributes->decoder_count = profile.engines.decoders;
        attributes->encoder_count = profile.engines.encoders;
        attributes->jpeg_count = profile.engines.jpeg;
        attributes->ofa_count = profile.engines.ofa;
        attributes->gpu_instance_slice_count = profile.slices;
        attributes->memory_size_mib = static_cast<std::uint64_t>(profile.memory_mib);
      }
    }
    return NvmlCode::kSuccess;
  });
}
