// MIG: mode, profiles, GPU instances.
#include <algorithm>

#include "gpu/simulated_instances.h"
#include "library.h"

using namespace septet::simnvml;  // NOLINT: the C interface lives outside
namespace gpu = septet::gpu;

namespace {

abi::GpuInstance instance_handle(unsigned device, gpu::GpuInstanceId id) {
  return static_cast<abi::GpuInstance>(
      to_pointer({HandleKind::kGpuInstance, device, id.value(), 0}));
}

// Why profiles cannot be asked for now.
NvmlCode profiles_available(const CallContext& call) {
  if (!model_of(call.gpu).mig.supported || call.handle.kind != HandleKind::kGpu) {
    return NvmlCode::kNotSupported;
  }
  return call.gpu.mig_current || call.node.config.answers_with_mig_off ? NvmlCode::kSuccess
                                                                       : NvmlCode::kNotSupported;
}

NvmlCode find_by_enum(CallContext& call, unsigned nvml_enum, gpu::GpuInstanceProfile& found) {
  if (nvml_enum >= abi::kGpuInstanceProfileCount) {
    return NvmlCode::kInvalidArgument;
  }
  if (const NvmlCode code = profiles_available(call); code != NvmlCode::kSuccess) {
    return code;
  }
  for (const gpu::GpuInstanceProfile& profile : profiles_of(call.gpu)) {
    if (profile.nvml_enum == nvml_enum) {
      found = profile;
      return NvmlCode::kSuccess;
    }
  }
  return NvmlCode::kNotSupported;
}

// The fields that all versions share, by name.
template <typename T>
void fill(T& info, const gpu::GpuInstanceProfile& profile) {
  info.id = profile.id.value();
  info.slice_count = profile.slices;
  info.instance_count = profile.max_instances;
  info.multiprocessor_count = profile.engines.multiprocessors;
  info.copy_engine_count = profile.engines.copy_engines;
  info.decoder_count = profile.engines.decoders;
  info.encoder_count = profile.engines.encoders;
  info.jpeg_count = profile.engines.jpeg;
  info.ofa_count = profile.engines.ofa;
  info.memory_size_mib = static_cast<std::uint64_t>(profile.memory_mib);
}

template <typename T>
NvmlCode answer_version(void* out, const gpu::GpuInstanceProfile& profile) {
  T* info = static_cast<T*>(out);
  fill(*info, profile);
  return copy_text("MIG " + profile.name, info->name, sizeof info->name);
}

template <typename F>
abi::Return with_gpu(std::string_view function, Access access, abi::Device device, F work) {
  return library().call(function, access, device, [&](CallContext& call) {
    // A MIG device is no GPU: it has no mode and no instances of its own.
    return call.handle.kind == HandleKind::kGpu ? work(call) : NvmlCode::kNotSupported;
  });
}

const gpu::GpuInstanceProfile* by_id(const std::vector<gpu::GpuInstanceProfile>& profiles,
                                     unsigned id) {
  const auto found = std::find_if(profiles.begin(), profiles.end(),
                                  [&](const auto& profile) { return profile.id.value() == id; });
  return found == profiles.end() ? nullptr : &*found;
}

abi::Return placements(abi::Device device, unsigned profile_id, abi::Placement* out,
                       unsigned* count) {
  return with_gpu(
      "DeviceGetGpuInstancePossiblePlacements", Access::kRead, device, [&](CallContext& call) {
        if (const NvmlCode code = profiles_available(call); code != NvmlCode::kSuccess) {
          return code;
        }
        const auto profiles = profiles_of(call.gpu);
        const auto* profile = by_id(profiles, profile_id);
        if (profile == nullptr) {
          return NvmlCode::kInvalidArgument;
        }
        return copy_list(profile->placements, out, count, [](const auto& span) {
          return abi::Placement{span.start, span.size};
        });
      });
}

abi::Return create(std::string_view function, abi::Device device, unsigned profile,
                   const abi::Placement* placement, abi::GpuInstance* out) {
  return with_gpu(function, Access::kWrite, device, [&](CallContext& call) {
    if (out == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    std::optional<gpu::Placement> place;
    if (placement != nullptr) {
      place = gpu::Placement{placement->start, placement->size};
    }
    gpu::GpuInstance created;
    const NvmlCode code = create_gpu_instance(call.gpu, gpu::ProfileId(profile), place, created);
    if (code == NvmlCode::kSuccess) {
      *out = instance_handle(call.gpu.config.index, created.id);
    }
    return code;
  });
}

}  // namespace

SEPTET_NVML nvmlDeviceGetMigMode(abi::Device device, unsigned* current, unsigned* pending) {
  return with_gpu("DeviceGetMigMode", Access::kRead, device, [&](CallContext& call) {
    if (!model_of(call.gpu).mig.supported) {
      return NvmlCode::kNotSupported;
    }
    if (current == nullptr || pending == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    *current = call.gpu.mig_current ? 1 : 0;
    *pending = call.gpu.mig_pending ? 1 : 0;
    return NvmlCode::kSuccess;
  });
}

SEPTET_NVML nvmlDeviceSetMigMode(abi::Device device, unsigned mode, abi::Return* activation) {
  return with_gpu("DeviceSetMigMode", Access::kWrite, device, [&](CallContext& call) {
    if (mode > 1 || activation == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    const auto wanted = mode == 1 ? gpu::MigMode::kEnabled : gpu::MigMode::kDisabled;
    const auto answer = set_mig_mode(call.gpu, wanted, call.verdict.activation);
    *activation = static_cast<abi::Return>(answer.activation);
    return answer.code;
  });
}

SEPTET_NVML nvmlDeviceGetGpuInstanceProfileInfo(abi::Device device, unsigned nvml_enum,
                                                abi::GpuInstanceProfileInfo* info) {
  return with_gpu("DeviceGetGpuInstanceProfileInfo", Access::kRead, device, [&](CallContext& call) {
    gpu::GpuInstanceProfile profile;
    const NvmlCode code =
        info == nullptr ? NvmlCode::kInvalidArgument : find_by_enum(call, nvml_enum, profile);
    if (code == NvmlCode::kSuccess) {
      *info = {};
      fill(*info, profile);
    }
    return code;
  });
}

SEPTET_NVML nvmlDeviceGetGpuInstanceProfileInfoV(abi::Device device, unsigned nvml_enum,
                                                 std::uint32_t* info) {
  return with_gpu(
      "DeviceGetGpuInstanceProfileInfoV", Access::kRead, device, [&](CallContext& call) {
        gpu::GpuInstanceProfile profile;
        const NvmlCode code =
            info == nullptr ? NvmlCode::kInvalidArgument : find_by_enum(call, nvml_enum, profile);
        if (code != NvmlCode::kSuccess) {
          return code;
        }
        if (*info == abi::version_of(2, sizeof(abi::GpuInstanceProfileInfoV2))) {
          static_cast<abi::GpuInstanceProfileInfoV2*>(static_cast<void*>(info))->is_p2p_supported =
              0;
          return answer_version<abi::GpuInstanceProfileInfoV2>(info, profile);
        }
        if (*info == abi::version_of(3, sizeof(abi::GpuInstanceProfileInfoV3))) {
          static_cast<abi::GpuInstanceProfileInfoV3*>(static_cast<void*>(info))->capabilities = 0;
          return answer_version<abi::GpuInstanceProfileInfoV3>(info, profile);
        }
        return NvmlCode::kArgumentVersionMismatch;
      });
}

SEPTET_NVML nvmlDeviceGetGpuInstancePossiblePlacements(abi::Device device, unsigned profile,
                                                       abi::Placement* out, unsigned* count) {
  return placements(device, profile, out, count);
}
SEPTET_NVML nvmlDeviceGetGpuInstancePossiblePlacements_v2(abi::Device device, unsigned profile,
                                                          abi::Placement* out, unsigned* count) {
  return placements(device, profile, out, count);
}

SEPTET_NVML nvmlDeviceGetGpuInstanceRemainingCapacity(abi::Device device, unsigned profile,
                                                      unsigned* count) {
  return with_gpu(
      "DeviceGetGpuInstanceRemainingCapacity", Access::kRead, device, [&](CallContext& call) {
        if (const NvmlCode code = profiles_available(call); code != NvmlCode::kSuccess) {
          return code;
        }
        const auto left = remaining_capacity(call.gpu, gpu::ProfileId(profile));
        if (!left || count == nullptr) {
          return NvmlCode::kInvalidArgument;
        }
        *count = *left;
        return NvmlCode::kSuccess;
      });
}

SEPTET_NVML nvmlDeviceGetGpuInstances(abi::Device device, unsigned profile, abi::GpuInstance* out,
                                      unsigned* count) {
  return with_gpu("DeviceGetGpuInstances", Access::kRead, device, [&](CallContext& call) {
    if (!call.gpu.mig_current) {
      return NvmlCode::kNotSupported;
    }
    if (by_id(profiles_of(call.gpu), profile) == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    std::vector<gpu::GpuInstance> matching;
    for (const gpu::GpuInstance& instance : call.gpu.instances) {
      if (instance.profile_id.value() == profile) {
        matching.push_back(instance);
      }
    }
    return copy_list(matching, out, count, [&](const gpu::GpuInstance& instance) {
      return instance_handle(call.gpu.config.index, instance.id);
    });
  });
}

SEPTET_NVML nvmlDeviceGetGpuInstanceById(abi::Device device, unsigned id, abi::GpuInstance* out) {
  return with_gpu("DeviceGetGpuInstanceById", Access::kRead, device, [&](CallContext& call) {
    if (!call.gpu.mig_current) {
      return NvmlCode::kNotSupported;
    }
    if (out == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    if (find_instance(call.gpu, gpu::GpuInstanceId(id)) == nullptr) {
      return NvmlCode::kNotFound;
    }
    *out = instance_handle(call.gpu.config.index, gpu::GpuInstanceId(id));
    return NvmlCode::kSuccess;
  });
}

SEPTET_NVML nvmlDeviceCreateGpuInstance(abi::Device device, unsigned profile,
                                        abi::GpuInstance* out) {
  return create("DeviceCreateGpuInstance", device, profile, nullptr, out);
}

SEPTET_NVML nvmlDeviceCreateGpuInstanceWithPlacement(abi::Device device, unsigned profile,
                                                     const abi::Placement* placement,
                                                     abi::GpuInstance* out) {
  if (placement == nullptr) {
    return static_cast<abi::Return>(NvmlCode::kInvalidArgument);
  }
  return create("DeviceCreateGpuInstanceWithPlacement", device, profile, placement, out);
}

SEPTET_NVML nvmlGpuInstanceGetInfo(abi::GpuInstance instance, abi::GpuInstanceInfo* info) {
  return library().call("GpuInstanceGetInfo", Access::kRead, instance, [&](CallContext& call) {
    if (info == nullptr || call.handle.kind != HandleKind::kGpuInstance) {
      return NvmlCode::kInvalidArgument;
    }
    const auto* found = find_instance(call.gpu, gpu::GpuInstanceId(call.handle.gpu_instance));
    *info = {device_handle(call.gpu.config.index),
             found->id.value(),
             found->profile_id.value(),
             {found->placement.start, found->placement.size}};
    return NvmlCode::kSuccess;
  });
}

SEPTET_NVML nvmlGpuInstanceDestroy(abi::GpuInstance instance) {
  return library().call("GpuInstanceDestroy", Access::kWrite, instance, [&](CallContext& call) {
    if (call.handle.kind != HandleKind::kGpuInstance) {
      return NvmlCode::kInvalidArgument;
    }
    return destroy_gpu_instance(call.gpu, gpu::GpuInstanceId(call.handle.gpu_instance));
  });
}
