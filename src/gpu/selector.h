// Naming a GPU or a part of it on the command line.
//
//   GPU        index (0), UUID (GPU-...), PCI bus id (07:00.0, 0000:07:00.0), name (a part, if
//   unique),
//              "all"
//   partition  GPU:GI, GPU:GI:CI, or the UUID of a MIG device (MIG-...)
//
// Pure: resolved against states that were observed before. Errors are kNotFound and name what
// exists; kUsage where a word means several.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/types.h"

namespace septet::gpu {

// The position in `gpus` of the one that the selector names.
Result<std::size_t> select_gpu(const std::vector<GpuState>& gpus, std::string_view selector);

// The positions of all that a comma-separated list names, ascending, each once.
Result<std::vector<std::size_t>> select_gpus(const std::vector<GpuState>& gpus,
                                             std::string_view selectors);

struct PartitionRef {
  std::size_t gpu = 0;  // position in the states
  GpuInstanceId gpu_instance;
  std::optional<ComputeInstanceId> compute_instance;
  bool operator==(const PartitionRef&) const = default;
};

Result<PartitionRef> select_partition(const std::vector<GpuState>& gpus, std::string_view selector);

}  // namespace septet::gpu
