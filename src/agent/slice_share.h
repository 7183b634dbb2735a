// SliceShare: what a slice of a simulated GPU may use of this machine.
//
// A simulated slice is a real limit: k of n compute slices get k/n of the processors' time, and the
// slice's part of the GPU's memory becomes its part of the machine's. So on a plain processor the
// ratios of a partitioned GPU hold and can be measured. Pure; any thread.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "gpu/types.h"

namespace septet::agent {

struct MachineSize {
  double cpus = 1;
  std::int64_t memory_bytes = 0;
};

struct SliceShare {
  double cpus = 0;                     // processors' worth of time
  Duration period = milliseconds(10);  // over which the share is held; see os/cgroup.h
  std::int64_t memory_bytes = 0;
  bool operator==(const SliceShare&) const = default;
};

// The whole device: all processors, and the GPU's memory or four fifths of the machine's, whichever
// is less (the rest is for the load generator and the system).
SliceShare device_share(const gpu::GpuState& device, const MachineSize& machine);

// A GPU instance of that profile.
SliceShare slice_share(const gpu::GpuState& device, const gpu::GpuInstanceProfile& profile,
                       const MachineSize& machine);

// The smallest profile, by slices, then memory; of equals the plain one, which is listed first.
// Null where the GPU cannot be partitioned.
const gpu::GpuInstanceProfile* smallest_profile(const gpu::GpuState& device);

}  // namespace septet::agent
