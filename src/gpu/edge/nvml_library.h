// NvmlLibrary: libnvidia-ml.so.1, opened at run time, its functions by our own declarations.
//
// Owned by NvmlDriver. Optional functions are null in older drivers. The library stays open and
// initialised for the life of this object.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "gpu/nvml_abi.h"
#include "gpu/nvml_code.h"

namespace septet::gpu {

// Every function of NVML that septet calls: required ones first, then those that may be missing.
#define SEPTET_NVML_REQUIRED(X)                              \
  X(nvmlInit_v2, ())                                         \
  X(nvmlShutdown, ())                                        \
  X(nvmlSystemGetDriverVersion, (char*, unsigned))           \
  X(nvmlSystemGetNVMLVersion, (char*, unsigned))             \
  X(nvmlSystemGetCudaDriverVersion, (int*))                  \
  X(nvmlDeviceGetCount_v2, (unsigned*))                      \
  X(nvmlDeviceGetHandleByIndex_v2, (unsigned, abi::Device*)) \
  X(nvmlDeviceGetName, (abi::Device, char*, unsigned))       \
  X(nvmlDeviceGetUUID, (abi::Device, char*, unsigned))       \
  X(nvmlDeviceGetPciInfo_v3, (abi::Device, void*))           \
  X(nvmlDeviceGetMemoryInfo, (abi::Device, abi::Memory*))

#define SEPTET_NVML_OPTIONAL(X)                                                                   \
  X(nvmlDeviceGetMigMode, (abi::Device, unsigned*, unsigned*))                                    \
  X(nvmlDeviceSetMigMode, (abi::Device, unsigned, abi::Return*))                                  \
  X(nvmlDeviceGetMaxMigDeviceCount, (abi::Device, unsigned*))                                     \
  X(nvmlDeviceGetMigDeviceHandleByIndex, (abi::Device, unsigned, abi::Device*))                   \
  X(nvmlDeviceGetGpuInstanceId, (abi::Device, unsigned*))                                         \
  X(nvmlDeviceGetComputeInstanceId, (abi::Device, unsigned*))                                     \
  X(nvmlDeviceGetGpuInstanceProfileInfo, (abi::Device, unsigned, abi::GpuInstanceProfileInfo*))   \
  X(nvmlDeviceGetGpuInstanceProfileInfoV, (abi::Device, unsigned, void*))                         \
  X(nvmlDeviceGetGpuInstancePossiblePlacements_v2,                                                \
    (abi::Device, unsigned, abi::Placement*, unsigned*))                                          \
  X(nvmlDeviceGetGpuInstanceRemainingCapacity, (abi::Device, unsigned, unsigned*))                \
  X(nvmlDeviceGetGpuInstances, (abi::Device, unsigned, abi::GpuInstance*, unsigned*))             \
  X(nvmlDeviceGetGpuInstanceById, (abi::Device, unsigned, abi::GpuInstance*))                     \
  X(nvmlDeviceCreateGpuInstanceWithPlacement,                                                     \
    (abi::Device, unsigned, const abi::Placement*, abi::GpuInstance*))                            \
  X(nvmlGpuInstanceGetInfo, (abi::GpuInstance, abi::GpuInstanceInfo*))                            \
  X(nvmlGpuInstanceDestroy, (abi::GpuInstance))                                                   \
  X(nvmlGpuInstanceGetComputeInstanceProfileInfo,                                                 \
    (abi::GpuInstance, unsigned, unsigned, abi::ComputeInstanceProfileInfo*))                     \
  X(nvmlGpuInstanceGetComputeInstanceProfileInfoV, (abi::GpuInstance, unsigned, unsigned, void*)) \
  X(nvmlGpuInstanceGetComputeInstances,                                                           \
    (abi::GpuInstance, unsigned, abi::ComputeInstance*, unsigned*))                               \
  X(nvmlGpuInstanceGetComputeInstanceById, (abi::GpuInstance, unsigned, abi::ComputeInstance*))   \
  X(nvmlGpuInstanceCreateComputeInstance, (abi::GpuInstance, unsigned, abi::ComputeInstance*))    \
  X(nvmlComputeInstanceGetInfo_v2, (abi::ComputeInstance, abi::ComputeInstanceInfo*))             \
  X(nvmlComputeInstanceDestroy, (abi::ComputeInstance))                                           \
  X(nvmlDeviceGetComputeRunningProcesses_v2, (abi::Device, unsigned*, abi::ProcessInfo*))         \
  X(nvmlDeviceGetComputeRunningProcesses_v3, (abi::Device, unsigned*, abi::ProcessInfo*))         \
  X(nvmlDeviceGetGraphicsRunningProcesses_v2, (abi::Device, unsigned*, abi::ProcessInfo*))        \
  X(nvmlDeviceGetGraphicsRunningProcesses_v3, (abi::Device, unsigned*, abi::ProcessInfo*))        \
  X(nvmlSystemGetProcessName, (unsigned, char*, unsigned))                                        \
  X(septet_simnvml_version, ())

struct NvmlFunctions {
#define SEPTET_DECLARE(name, parameters) abi::Return(*name) parameters = nullptr;
  SEPTET_NVML_REQUIRED(SEPTET_DECLARE)
  SEPTET_NVML_OPTIONAL(SEPTET_DECLARE)
#undef SEPTET_DECLARE
};

class NvmlLibrary {
 public:
  // Opens and initialises. kPrecondition when the library or the driver is missing; the error names
  // --simulate.
  static Result<std::unique_ptr<NvmlLibrary>> open(const std::string& path);
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  const NvmlFunctions& functions() const { return functions_; }
  const std::string& path() const { return path_; }

 private:
  explicit NvmlLibrary(std::string path) : path_(std::move(path)) {}
  Result<Ok> load();

  std::string path_;
  void* handle_ = nullptr;
  bool initialised_ = false;
  NvmlFunctions functions_;
};

}  // namespace septet::gpu
