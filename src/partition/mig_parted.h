// The configuration of NVIDIA's mig-parted (version v1), as values: which GPUs shall have how many
// MIG devices of which kind. Counts only; the format knows no placements.
//
//   version: v1
//   mig-configs:
//     all-balanced:
//     - device-filter: ["0x20B010DE"]   # device << 16 | vendor, optional ":<subsystem>"
//       devices: all                    # or a list of GPU indexes
//       mig-enabled: true
//       mig-devices: {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}
//
// Pure; reading the file is edge/mig_parted_file.h.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gpu/types.h"
#include "partition/want.h"

namespace septet::partition {

// MIG devices by name ("1g.5gb", "1c.3g.20gb") and how many.
using DeviceCounts = std::map<std::string, unsigned>;

struct MigPartedEntry {
  std::vector<std::string> device_filters;  // empty: any
  bool all_devices = false;
  std::vector<unsigned> devices;  // GPU indexes, unless all
  bool mig_enabled = false;
  DeviceCounts mig_devices;
  std::size_t line = 0;  // in the file, for messages
  bool operator==(const MigPartedEntry&) const = default;
};

struct MigPartedConfig {
  std::string file;
  std::vector<std::pair<std::string, std::vector<MigPartedEntry>>> labels;  // as in the file
};

// What one GPU shall have.
struct MigPartedGoal {
  gpu::MigMode mode = gpu::MigMode::kEnabled;
  DeviceCounts counts;
  std::size_t line = 0;
};

// The entries of a label. kNotFound names the labels that exist; without a label the only one.
Result<const std::vector<MigPartedEntry>*> find_label(const MigPartedConfig& config,
                                                      const std::string& label);

// The last entry that matches the GPU (mig-parted walks them in order); nothing when none does.
std::optional<MigPartedGoal> goal_for(const std::vector<MigPartedEntry>& entries,
                                      const gpu::GpuState& state);

// The goal as a want. The names were checked when the file was read.
Want want_of(const MigPartedGoal& goal);

// What the GPU has, in the same words. A GPU instance without compute instance is no MIG device.
DeviceCounts devices_of(const gpu::GpuState& state);
// Whether it is what the goal says; else why not, in words.
std::optional<std::string> difference(const MigPartedGoal& goal, const gpu::GpuState& state);

// What all GPUs have, as one label; GPUs with the same content share an entry.
std::vector<MigPartedEntry> export_entries(const std::vector<gpu::GpuState>& states);
// The file's text. mig-parted reads it.
std::string write_yaml(const std::string& label, const std::vector<MigPartedEntry>& entries);
std::string write_json(const std::string& label, const std::vector<MigPartedEntry>& entries);

}  // namespace septet::partition
