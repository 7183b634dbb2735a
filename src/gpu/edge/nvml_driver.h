// NvmlDriver: the GpuDriver that every command uses, over libnvidia-ml.so.1, real or simulated.
//
// No code asks which of the two it is; only info() reports it. One thread at a time.
#pragma once

#include <memory>
#include <string>

#include "gpu/edge/nvml_library.h"
#include "gpu/gpu_driver.h"

namespace septet::gpu {

class NvmlDriver : public GpuDriver {
 public:
  // `path` is a file or a name that the dynamic loader finds.
  static Result<std::unique_ptr<GpuDriver>> open(const std::string& path);

  Result<DriverInfo> info() override;
  Result<unsigned> gpu_count() override;
  Result<GpuState> observe(unsigned index) override;
  Result<std::vector<ComputeInstanceProfile>> compute_profiles(unsigned index,
                                                               GpuInstanceId instance) override;
  Result<unsigned> remaining_capacity(unsigned index, ProfileId profile) override;
  Result<Ok> set_mig_mode(unsigned index, MigMode mode) override;
  Result<GpuInstance> create_gpu_instance(unsigned index, ProfileId profile,
                                          Placement placement) override;
  Result<Ok> destroy_gpu_instance(unsigned index, GpuInstanceId instance) override;
  Result<ComputeInstance> create_compute_instance(unsigned index, GpuInstanceId instance,
                                                  ProfileId profile) override;
  Result<Ok> destroy_compute_instance(unsigned index, GpuInstanceId instance,
                                      ComputeInstanceId compute_instance) override;

 private:
  explicit NvmlDriver(std::unique_ptr<NvmlLibrary> library)
      : library_(std::move(library)), nvml_(library_->functions()) {}

  Result<abi::Device> device_at(unsigned index) const;
  Result<abi::GpuInstance> instance_at(unsigned index, GpuInstanceId instance) const;

  std::unique_ptr<NvmlLibrary> library_;
  const NvmlFunctions& nvml_;
};

}  // namespace septet::gpu
