// SimulatedDriver: the GpuDriver over a SimulatedNode in this process, for tests without a library.
//
// It goes through the same core and the same translation of codes as the library and NVML's driver.
// Time is virtual: delays of the fault plan move now() and nothing waits. A rule that kills throws
// nothing and kills nothing here; was_killed() tells, and every later call fails, as if the process
// had died there. Borrowed node; one caller at a time.
#pragma once

#include <functional>
#include <string_view>

#include "base/time.h"
#include "gpu/gpu_driver.h"
#include "gpu/simulated_node.h"

namespace septet::gpu {

class SimulatedDriver : public GpuDriver {
 public:
  explicit SimulatedDriver(SimulatedNode& node) : node_(node) {}

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

  Instant now() const { return now_; }
  bool was_killed() const { return killed_; }
  // Comes back to life, as a new process.
  void revive() { killed_ = false; }

 private:
  // Runs one call under the fault plan; `work` does it and answers with a code.
  NvmlCode call(const CallSite& site, const std::function<NvmlCode(SimulatedGpu&)>& work);

  SimulatedNode& node_;
  Instant now_{};
  bool killed_ = false;
  std::optional<NvmlCode> activation_;  // of the last call, when the plan forces one
};

// The GPU as a driver observes it.
GpuState state_of(const SimulatedGpu& gpu);

}  // namespace septet::gpu
