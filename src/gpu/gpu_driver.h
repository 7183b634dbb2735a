// GpuDriver: what septet asks of a GPU driver, in values and domain errors.
//
// One production implementation (gpu/edge: NVML, opened at run time); the simulated GPU is another
// libnvidia-ml.so.1 behind the same implementation. Tests use the simulated core in process. Owned
// by main(); called by one thread at a time. Nothing here retries, plans or repairs.
//
// Errors: kPrecondition (in use, MIG off, no driver), kNotFound, kNoCapacity (insufficient
// resources), kPermission, kResetNeeded, kFailed (GPU lost, unknown).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/types.h"

namespace septet::gpu {

struct DriverInfo {
  std::string driver_version;
  std::string nvml_version;
  std::string cuda_version;  // "12.2"
  std::string library;       // path or name of the opened library
  bool simulated = false;    // the library says that it simulates
};

class GpuDriver {
 public:
  virtual ~GpuDriver() = default;

  virtual Result<DriverInfo> info() = 0;
  virtual Result<unsigned> gpu_count() = 0;
  // Everything about one GPU, read now.
  virtual Result<GpuState> observe(unsigned index) = 0;
  // The compute instance profiles that a GPU instance offers.
  virtual Result<std::vector<ComputeInstanceProfile>> compute_profiles(unsigned index,
                                                                       GpuInstanceId instance) = 0;
  // How many more instances of the profile the driver says it could create now.
  virtual Result<unsigned> remaining_capacity(unsigned index, ProfileId profile) = 0;

  // Asks for the mode. Success says only that it was accepted: observe() tells current and pending.
  // kResetNeeded when it stays pending until a reset or reboot, kPrecondition when clients hold it.
  virtual Result<Ok> set_mig_mode(unsigned index, MigMode mode) = 0;
  virtual Result<GpuInstance> create_gpu_instance(unsigned index, ProfileId profile,
                                                  Placement placement) = 0;
  virtual Result<Ok> destroy_gpu_instance(unsigned index, GpuInstanceId instance) = 0;
  virtual Result<ComputeInstance> create_compute_instance(unsigned index, GpuInstanceId instance,
                                                          ProfileId profile) = 0;
  virtual Result<Ok> destroy_compute_instance(unsigned index, GpuInstanceId instance,
                                              ComputeInstanceId compute_instance) = 0;
};

}  // namespace septet::gpu
