// Letting a process hold a partition of a simulated node, as a CUDA context holds a real one.
//
// While it lives the partition is in use: it cannot be destroyed, and nvidia-smi and septet status
// show the process. A real GPU knows its clients itself; there is nothing to call then.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "gpu/types.h"

namespace septet::gpu {

struct Client {
  std::int64_t pid = 0;  // of a living process; gone with it, or by release_partition()
  std::string name;
  std::int64_t used_memory_bytes = 0;
};

// `simulate` as for open_driver(). kNotFound when there is no such MIG device or process.
Result<Ok> hold_partition(const std::string& simulate, const MigUuid& device, const Client& client);
// The whole GPU, with MIG off.
Result<Ok> hold_gpu(const std::string& simulate, const GpuUuid& gpu, const Client& client);
// Lets go of whatever the process holds.
Result<Ok> release_partition(const std::string& simulate, std::int64_t pid);

}  // namespace septet::gpu
