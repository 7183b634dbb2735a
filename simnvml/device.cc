// Finding a device and its fixed properties.
#include <fmt/format.h>

#include <cstring>
#include <string>

#include "base/text.h"
#include "gpu/simulated_instances.h"
#include "library.h"

using namespace septet::simnvml;  // NOLINT: the C interface lives outside
using septet::gpu::SimulatedGpu;
using septet::gpu::SimulatedNode;

namespace {

// A GPU is found where the test says so.
template <typename F>
abi::Return find_gpu(std::string_view function, abi::Device* device, F is_it) {
  return library().system_call(function, [&](SimulatedNode& node) {
    if (device == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    for (unsigned index = 0; index < node.gpus.size(); ++index) {
      if (is_it(node.gpus[index])) {
        *device = device_handle(index);
        return NvmlCode::kSuccess;
      }
    }
    return NvmlCode::kNotFound;
  });
}

abi::Device mig_handle(unsigned gpu, const septet::gpu::MigDeviceRef& device) {
  return static_cast<abi::Device>(to_pointer(
      {HandleKind::kMigDevice, gpu, device.gpu_instance.value(), device.compute_instance.value()}));
}

// "0000:07:00.0" and "00000000:07:00.0" mean the same.
std::string without_domain(std::string_view bus_id) {
  const auto colon = bus_id.find(':');
  return septet::to_lower(colon == std::string_view::npos ? bus_id : bus_id.substr(colon + 1));
}

std::string serial_of(const SimulatedGpu& gpu) {
  return fmt::format("15600{:08}", gpu.config.seed % 10000 * 100 + gpu.config.index);
}

// Only the first bytes, which every version of the struct shares.
abi::Return pci_info(const void* pointer, void* out, std::size_t size) {
  return library().call("DeviceGetPciInfo", Access::kRead, pointer, [&](CallContext& call) {
    if (out == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    const std::string bus_id = pci_bus_id_of(call.gpu);
    abi::PciInfo info{};
    std::memcpy(info.bus_id_legacy, bus_id.data() + 4, bus_id.size() - 4);
    std::memcpy(info.bus_id, bus_id.data(), bus_id.size());
    info.bus = pci_bus_of(call.gpu);
    info.pci_device_id = model_of(call.gpu).pci_device_ids.front();
    info.pci_subsystem_id = 0x146F10DE;
    std::memcpy(out, &info, size);
    return NvmlCode::kSuccess;
  });
}

template <typename T>
abi::Return put(std::string_view function, const void* pointer, T* out,
                const std::function<T(CallContext&)>& value) {
  return library().call(function, Access::kRead, pointer, [&](CallContext& call) {
    if (out == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    *out = value(call);
    return NvmlCode::kSuccess;
  });
}

}  // namespace

SEPTET_NVML nvmlDeviceGetHandleByIndex(unsigned index, abi::Device* device) {
  const auto code = find_gpu("DeviceGetHandleByIndex", device,
                             [&](const SimulatedGpu& gpu) { return gpu.config.index == index; });
  return code == static_cast<int>(NvmlCode::kNotFound)
             ? static_cast<int>(NvmlCode::kInvalidArgument)
             : code;
}
SEPTET_NVML nvmlDeviceGetHandleByIndex_v2(unsigned index, abi::Device* device) {
  return nvmlDeviceGetHandleByIndex(index, device);
}

SEPTET_NVML nvmlDeviceGetHandleByPciBusId(const char* bus_id, abi::Device* device) {
  if (bus_id == nullptr) {
    return static_cast<abi::Return>(NvmlCode::kInvalidArgument);
  }
  return find_gpu("DeviceGetHandleByPciBusId", device, [&](const SimulatedGpu& gpu) {
    return without_domain(bus_id) == without_domain(pci_bus_id_of(gpu));
  });
}
SEPTET_NVML nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, abi::Device* device) {
  return nvmlDeviceGetHandleByPciBusId(bus_id, device);
}

SEPTET_NVML nvmlDeviceGetHandleBySerial(const char* serial, abi::Device* device) {
  if (serial == nullptr) {
    return static_cast<abi::Return>(NvmlCode::kInvalidArgument);
  }
  return find_gpu("DeviceGetHandleBySerial", device,
                  [&](const SimulatedGpu& gpu) { return serial_of(gpu) == serial; });
}

SEPTET_NVML nvmlDeviceGetHandleByUUID(const char* uuid, abi::Device* device) {
  if (uuid == nullptr) {
    return static_cast<abi::Return>(NvmlCode::kInvalidArgument);
  }
  abi::Device mig = nullptr;
  const auto code = find_gpu("DeviceGetHandleByUUID", device, [&](const SimulatedGpu& gpu) {
    for (const auto& part : mig_devices(gpu)) {
      if (part.uuid.value() == uuid) {
        mig = mig_handle(gpu.config.index, part);
        return true;
      }
    }
    return uuid_of(gpu) == uuid;
  });
  if (mig != nullptr) {
    *device = mig;
  }
  return code;
}

SEPTET_NVML nvmlDeviceGetIndex(abi::Device device, unsigned* index) {
  return library().call("DeviceGetIndex", Access::kRead, device, [&](CallContext& call) {
    if (index == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    *index = call.gpu.config.index;
    if (call.handle.kind == HandleKind::kMigDevice) {
      const auto devices = mig_devices(call.gpu);
      for (*index = 0; *index < devices.size(); ++*index) {
        const auto& other = devices[*index];
        if (other.gpu_instance.value() == call.handle.gpu_instance &&
            other.compute_instance.value() == call.handle.compute_instance) {
          break;
        }
      }
    }
    return NvmlCode::kSuccess;
  });
}

SEPTET_NVML nvmlDeviceGetMinorNumber(abi::Device device, unsigned* minor) {
  return put<unsigned>("DeviceGetMinorNumber", device, minor,
                       [](CallContext& call) { return call.gpu.minor; });
}

SEPTET_NVML nvmlDeviceGetName(abi::Device device, char* name, unsigned size) {
  return library().call("DeviceGetName", Access::kRead, device, [&](CallContext& call) {
    std::string text = model_of(call.gpu).names.front();
    if (call.handle.kind == HandleKind::kMigDevice) {
      text +=
          " MIG " + mig_device_name(call.gpu, septet::gpu::GpuInstanceId(call.handle.gpu_instance),
                                    septet::gpu::ComputeInstanceId(call.handle.compute_instance));
    }
    return copy_text(text, name, size);
  });
}

SEPTET_NVML nvmlDeviceGetUUID(abi::Device device, char* uuid, unsigned size) {
  return library().call("DeviceGetUUID", Access::kRead, device, [&](CallContext& call) {
    if (call.handle.kind == HandleKind::kMigDevice) {
      for (const auto& part : mig_devices(call.gpu)) {
        if (part.gpu_instance.value() == call.handle.gpu_instance &&
            part.compute_instance.value() == call.handle.compute_instance) {
          return copy_text(part.uuid.value(), uuid, size);
        }
      }
    }
    return copy_text(uuid_of(call.gpu), uuid, size);
  });
}

SEPTET_NVML nvmlDeviceGetSerial(abi::Device device, char* serial, unsigned size) {
  return library().call("DeviceGetSerial", Access::kRead, device, [&](CallContext& call) {
    return copy_text(serial_of(call.gpu), serial, size);
  });
}

SEPTET_NVML nvmlDeviceGetPciInfo(abi::Device device, void* info) {
  return pci_info(device, info, offsetof(abi::PciInfo, pci_subsystem_id));
}
SEPTET_NVML nvmlDeviceGetPciInfo_v2(abi::Device device, void* info) {
  return pci_info(device, info, offsetof(abi::PciInfo, bus_id));
}
SEPTET_NVML nvmlDeviceGetPciInfo_v3(abi::Device device, void* info) {
  return pci_info(device, info, sizeof(abi::PciInfo));
}

SEPTET_NVML nvmlDeviceGetBrand(abi::Device device, unsigned* brand) {
  constexpr unsigned kBrandNvidia = 14;
  return put<unsigned>("DeviceGetBrand", device, brand,
                       [](CallContext& /*call*/) { return kBrandNvidia; });
}

SEPTET_NVML nvmlDeviceGetArchitecture(abi::Device device, unsigned* architecture) {
  return put<unsigned>("DeviceGetArchitecture", device, architecture, [](CallContext& call) {
    return static_cast<unsigned>(model_of(call.gpu).architecture);
  });
}

SEPTET_NVML nvmlDeviceGetCudaComputeCapability(abi::Device device, int* major, int* minor) {
  return library().call("DeviceGetCudaComputeCapability", Access::kRead, device,
                        [&](CallContext& call) {
                          if (major == nullptr || minor == nullptr) {
                            return NvmlCode::kInvalidArgument;
                          }
                          *major = static_cast<int>(model_of(call.gpu).compute_capability_major);
                          *minor = static_cast<int>(model_of(call.gpu).compute_capability_minor);
                          return NvmlCode::kSuccess;
                        });
}

// All processors: a simulated board knows no sockets of its own.
SEPTET_NVML nvmlDeviceGetCpuAffinity(abi::Device device, unsigned words, unsigned long* set) {
  return library().call("DeviceGetCpuAffinity", Access::kRead, device, [&](CallContext& /*call*/) {
    if (set == nullptr || words == 0) {
      return NvmlCode::kInvalidArgument;
    }
    std::fill(set, set + words, 0UL);
    set[0] = ~0UL;
    return NvmlCode::kSuccess;
  });
}

SEPTET_NVML nvmlDeviceGetMaxMigDeviceCount(abi::Device device, unsigned* count) {
  return put<unsigned>("DeviceGetMaxMigDeviceCount", device, count, [](CallContext& call) {
    return call.gpu.mig_current ? model_of(call.gpu).compute_slices : 0;
  });
}

SEPTET_NVML nvmlDeviceGetMigDeviceHandleByIndex(abi::Device device, unsigned index,
                                                abi::Device* mig) {
  return library().call("DeviceGetMigDeviceHandleByIndex", Access::kRead, device,
                        [&](CallContext& call) {
                          if (mig == nullptr) {
                            return NvmlCode::kInvalidArgument;
                          }
                          const auto devices = mig_devices(call.gpu);
                          if (index >= devices.size()) {
                            return NvmlCode::kNotFound;
                          }
                          *mig = mig_handle(call.gpu.config.index, devices[index]);
                          return NvmlCode::kSuccess;
                        });
}

SEPTET_NVML nvmlDeviceIsMigDeviceHandle(abi::Device device, unsigned* is_mig) {
  return put<unsigned>("DeviceIsMigDeviceHandle", device, is_mig, [](CallContext& call) {
    return call.handle.kind == HandleKind::kMigDevice ? 1U : 0U;
  });
}

SEPTET_NVML nvmlDeviceGetDeviceHandleFromMigDeviceHandle(abi::Device mig, abi::Device* device) {
  return library().call("DeviceGetDeviceHandleFromMigDeviceHandle", Access::kRead, mig,
                        [&](CallContext& call) {
                          if (device == nullptr || call.handle.kind != HandleKind::kMigDevice) {
                            return NvmlCode::kInvalidArgument;
                          }
                          *device = device_handle(call.gpu.config.index);
                          return NvmlCode::kSuccess;
                        });
}

SEPTET_NVML nvmlDeviceGetGpuInstanceId(abi::Device device, unsigned* id) {
  return library().call("DeviceGetGpuInstanceId", Access::kRead, device, [&](CallContext& call) {
    if (call.handle.kind != HandleKind::kMigDevice || id == nullptr) {
      return NvmlCode::kNotSupported;
    }
    *id = call.handle.gpu_instance;
    return NvmlCode::kSuccess;
  });
}

SEPTET_NVML nvmlDeviceGetComputeInstanceId(abi::Device device, unsigned* id) {
  return library().call("DeviceGetComputeInstanceId", Access::kRead, device,
                        [&](CallContext& call) {
                          if (call.handle.kind != HandleKind::kMigDevice || id == nullptr) {
                            return NvmlCode::kNotSupported;
                          }
                          *id = call.handle.compute_instance;
                          return NvmlCode::kSuccess;
                        });
}
