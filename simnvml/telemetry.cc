// Memory, modes and counters. What a simulation cannot know (power, heat, clocks) is not made up:
// those functions answer "not supported" (stubs.cc) and clients print N/A.
#include <algorithm>

#include "gpu/simulated_instances.h"
#include "library.h"

using namespace septet::simnvml;  // NOLINT: the C interface lives outside
namespace gpu = septet::gpu;

namespace {

constexpr std::uint64_t kMebibyte = 1024 * 1024;

template <typename T>
abi::Return put(std::string_view function, const void* pointer, T* out, T value) {
  return library().call(function, Access::kRead, pointer, [&](CallContext& /*call*/) {
    if (out == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    *out = value;
    return NvmlCode::kSuccess;
  });
}

// Memory of the GPU, or of the GPU instance behind a MIG device.
abi::Memory memory_of(const CallContext& call) {
  auto total = static_cast<std::uint64_t>(model_of(call.gpu).memory_total_mib) * kMebibyte;
  auto used = static_cast<std::uint64_t>(used_memory_bytes(call.gpu));
  if (call.handle.kind == HandleKind::kMigDevice) {
    const gpu::GpuInstanceId id(call.handle.gpu_instance);
    const auto* instance = find_instance(call.gpu, id);
    for (const auto& profile : profiles_of(call.gpu)) {
      if (profile.id == instance->profile_id) {
        total = static_cast<std::uint64_t>(profile.memory_mib) * kMebibyte;
      }
    }
    used = static_cast<std::uint64_t>(used_memory_bytes(call.gpu, id));
  }
  used = std::min(used, total);
  return {total, total - used, used};
}

// The window is the next power of two above the memory; an instance sees its share of it.
abi::Memory bar1_of(const CallContext& call) {
  std::uint64_t total_mib = 256;
  while (total_mib < static_cast<std::uint64_t>(model_of(call.gpu).memory_total_mib)) {
    total_mib *= 2;
  }
  if (call.handle.kind == HandleKind::kMigDevice) {
    const auto* instance = find_instance(call.gpu, gpu::GpuInstanceId(call.handle.gpu_instance));
    total_mib = total_mib * instance->placement.size / model_of(call.gpu).placement_units;
  }
  return {total_mib * kMebibyte, (total_mib - 1) * kMebibyte, kMebibyte};
}

}  // namespace

SEPTET_NVML nvmlDeviceGetMemoryInfo(abi::Device device, abi::Memory* memory) {
  return library().call("DeviceGetMemoryInfo", Access::kRead, device, [&](CallContext& call) {
    if (memory == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    *memory = memory_of(call);
    return NvmlCode::kSuccess;
  });
}

SEPTET_NVML nvmlDeviceGetMemoryInfo_v2(abi::Device device, abi::MemoryV2* memory) {
  return library().call("DeviceGetMemoryInfo", Access::kRead, device, [&](CallContext& call) {
    if (memory == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    if (memory->version != abi::version_of(2, sizeof(abi::MemoryV2))) {
      return NvmlCode::kArgumentVersionMismatch;
    }
    const abi::Memory plain = memory_of(call);
    memory->total = plain.total;
    memory->reserved = 0;
    memory->free = plain.free;
    memory->used = plain.used;
    return NvmlCode::kSuccess;
  });
}

SEPTET_NVML nvmlDeviceGetBAR1MemoryInfo(abi::Device device, abi::Memory* memory) {
  return library().call("DeviceGetBAR1MemoryInfo", Access::kRead, device, [&](CallContext& call) {
    if (memory == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    *memory = bar1_of(call);
    return NvmlCode::kSuccess;
  });
}

SEPTET_NVML nvmlDeviceGetPersistenceMode(abi::Device device, unsigned* mode) {
  return library().call("DeviceGetPersistenceMode", Access::kRead, device, [&](CallContext& call) {
    if (mode == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    *mode = call.gpu.persistence_mode ? 1 : 0;
    return NvmlCode::kSuccess;
  });
}

SEPTET_NVML nvmlDeviceSetPersistenceMode(abi::Device device, unsigned mode) {
  return library().call("DeviceSetPersistenceMode", Access::kWrite, device, [&](CallContext& call) {
    if (mode > 1) {
      return NvmlCode::kInvalidArgument;
    }
    call.gpu.persistence_mode = mode == 1;
    return NvmlCode::kSuccess;
  });
}

SEPTET_NVML nvmlDeviceGetComputeMode(abi::Device device, unsigned* mode) {
  return library().call("DeviceGetComputeMode", Access::kRead, device, [&](CallContext& call) {
    if (mode == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    *mode = call.gpu.compute_mode;
    return NvmlCode::kSuccess;
  });
}

SEPTET_NVML nvmlDeviceSetComputeMode(abi::Device device, unsigned mode) {
  return library().call("DeviceSetComputeMode", Access::kWrite, device, [&](CallContext& call) {
    if (mode > 3 || mode == 1) {  // 1, exclusive thread, is gone since long
      return mode == 1 ? NvmlCode::kNotSupported : NvmlCode::kInvalidArgument;
    }
    call.gpu.compute_mode = mode;
    return NvmlCode::kSuccess;
  });
}

SEPTET_NVML nvmlDeviceGetDisplayActive(abi::Device device, unsigned* active) {
  return put("DeviceGetDisplayActive", device, active, 0U);
}

SEPTET_NVML nvmlDeviceGetDisplayMode(abi::Device device, unsigned* mode) {
  return put("DeviceGetDisplayMode", device, mode, 0U);
}

SEPTET_NVML nvmlDeviceGetPerformanceState(abi::Device device, unsigned* state) {
  return put("DeviceGetPerformanceState", device, state, 0U);
}

SEPTET_NVML nvmlDeviceGetEccMode(abi::Device device, unsigned* current, unsigned* pending) {
  return library().call("DeviceGetEccMode", Access::kRead, device, [&](CallContext& /*call*/) {
    if (current == nullptr || pending == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    *current = 1;
    *pending = 1;
    return NvmlCode::kSuccess;
  });
}

SEPTET_NVML nvmlDeviceGetTotalEccErrors(abi::Device device, unsigned /*type*/, unsigned /*counter*/,
                                        std::uint64_t* count) {
  return put<std::uint64_t>("DeviceGetTotalEccErrors", device, count, 0);
}

// Answered for MIG devices too: without it nvidia-smi -q lists none.
SEPTET_NVML nvmlDeviceGetMemoryErrorCounter(abi::Device device, unsigned /*type*/,
                                            unsigned /*counter*/, unsigned /*location*/,
                                            std::uint64_t* count) {
  return put<std::uint64_t>("DeviceGetMemoryErrorCounter", device, count, 0);
}

SEPTET_NVML nvmlDeviceGetVirtualizationMode(abi::Device device, unsigned* mode) {
  return library().call("DeviceGetVirtualizationMode", Access::kRead, device,
                        [&](CallContext& call) {
                          if (mode == nullptr) {
                            return NvmlCode::kInvalidArgument;
                          }
                          *mode = call.gpu.config.virtual_machine ? 1 : 0;  // passthrough, or none
                          return NvmlCode::kSuccess;
                        });
}

SEPTET_NVML nvmlDeviceValidateInforom(abi::Device device) {
  return library().call("DeviceValidateInforom", Access::kRead, device,
                        [](CallContext& /*call*/) { return NvmlCode::kSuccess; });
}

SEPTET_NVML nvmlDeviceGetFieldValues(abi::Device device, int count, abi::FieldValue* values) {
  return library().call("DeviceGetFieldValues", Access::kRead, device, [&](CallContext& /*call*/) {
    if (values == nullptr || count < 0) {
      return NvmlCode::kInvalidArgument;
    }
    for (int i = 0; i < count; ++i) {
      values[i].result = static_cast<abi::Return>(NvmlCode::kNotSupported);
    }
    return NvmlCode::kSuccess;
  });
}
