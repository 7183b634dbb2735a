// NvmlReader: reads one GPU through NVML into septet's values. Used by NvmlDriver only.
//
// Every function answers with NVML's code, so that a reader can be tried again when an instance
// went away between two calls.
#pragma once

#include <string>
#include <vector>

#include "gpu/edge/nvml_library.h"
#include "gpu/types.h"

namespace septet::gpu {

class NvmlReader {
 public:
  NvmlReader(const NvmlFunctions& nvml, abi::Device device) : nvml_(nvml), device_(device) {}

  NvmlCode read(GpuState& state) const;
  NvmlCode read_instance(abi::GpuInstance handle, GpuInstance& instance) const;
  NvmlCode read_compute_profiles(abi::GpuInstance handle,
                                 std::vector<ComputeInstanceProfile>& profiles) const;
  NvmlCode read_compute_instance(abi::ComputeInstance handle, ComputeInstance& instance,
                                 GpuInstanceId of) const;

 private:
  struct MigDevice {
    unsigned gpu_instance = 0;
    unsigned compute_instance = 0;
    std::string uuid;
  };

  NvmlCode read_identity(GpuState& state) const;
  NvmlCode read_profiles(GpuState& state) const;
  NvmlCode read_profile(unsigned nvml_enum, std::int64_t total_mib,
                        GpuInstanceProfile& profile) const;
  NvmlCode read_placements(GpuInstanceProfile& profile) const;
  NvmlCode read_instances(GpuState& state) const;
  NvmlCode read_processes(GpuState& state) const;
  std::vector<MigDevice> mig_devices() const;

  const NvmlFunctions& nvml_;
  abi::Device device_;
};

}  // namespace septet::gpu
