// Time slices of a whole GPU: the nvidia-smi commands that set their length, and what it lists.
//
// NVML has no call for it: nvidia-smi compute-policy is the only way. It needs root, works on whole
// GPUs and is lost when the driver is reloaded. NVIDIA's own resource driver sets the compute mode
// to DEFAULT first, so that several processes may share the GPU at all. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "partition/advisor.h"

namespace septet::partition {

using CommandLine = std::vector<std::string>;

// The arguments of nvidia-smi, one command after the other.
std::vector<CommandLine> time_slice_commands(const std::string& gpu_uuid, SliceLength length);
CommandLine list_time_slice_command(const std::string& gpu_uuid);

// "default", "short", "medium", "long"; any case.
std::optional<SliceLength> parse_slice_length(std::string_view word);
// The length in the table that `nvidia-smi compute-policy -l` prints; nothing when there is none.
std::optional<SliceLength> listed_slice_length(std::string_view table);

}  // namespace septet::partition
