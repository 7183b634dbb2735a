// Reads mig-parted's configuration (YAML or JSON) and writes and reads its checkpoints.
//
// yaml-cpp and the JSON library stop here. Free functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/types.h"
#include "partition/layout.h"
#include "partition/mig_parted.h"

namespace septet::partition {

// Errors are kUsage "file:line: why": a wrong version, an unknown field, a profile that cannot be
// read, a negative or absurd count, a GPU named twice.
Result<MigPartedConfig> read_mig_parted(std::string_view text, const std::string& file);
Result<MigPartedConfig> load_mig_parted(const std::string& path);

// One GPU of a checkpoint.
struct CheckpointDevice {
  gpu::GpuUuid gpu;
  Layout layout;  // profile ids are those of the GPU that it was read for
};

// mig-parted's checkpoint: modes, GPU instances with placements and compute instances of all GPUs.
std::string write_checkpoint(const std::vector<gpu::GpuState>& states);
// For these GPUs: profiles are stored as NVML's enum and looked up in what each GPU offers.
Result<std::vector<CheckpointDevice>> read_checkpoint(std::string_view text,
                                                      const std::string& file,
                                                      const std::vector<gpu::GpuState>& states);

}  // namespace septet::partition
