// GpuModel: what is known about a kind of GPU without having one: its profiles and its rules.
//
// For simulation and offline planning. Memory sizes, names and even profile ids move with driver
// and firmware: on a machine with a driver, ask the driver (GpuDriver::observe), never this table.
// Immutable values; any thread may read them.
//
// The numbers are in gpu_model_tables.cc, written by tools/convert_gpu_models.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/types.h"

namespace septet::gpu {

// The value is NVML's number for the architecture.
enum class GpuArchitecture { kTuring = 6, kAmpere = 7, kAda = 8, kHopper = 9, kBlackwell = 10 };

// How the driver numbers GPU instances. base(size) is 0 for the whole GPU, 1 for halves, 3 for
// quarters, 7 for eighths (units U; 3 for single units of U = 4).
enum class GpuInstanceIdMap {
  kIdentity,       // base(size) + start / size
  kHalvesSwapped,  // base(size) + ((start + U/2) mod U) / size
  kRunning,        // unknown for this chip: the lowest free number from 1
};

// What a change of MIG mode costs.
struct MigModeRules {
  bool supported = false;
  bool enable_needs_gpu_reset = false;  // the driver resets the idle GPU by itself
  bool mode_survives_reboot = false;    // instances never do
};

struct GpuModel {
  std::string key;   // "A100-SXM4-40GB": what --simulate takes
  std::string chip;  // "GA100"
  GpuArchitecture architecture = GpuArchitecture::kAmpere;
  std::vector<std::string> names;             // product names; the first is what a simulation shows
  std::vector<std::uint32_t> pci_device_ids;  // device << 16 | vendor (0x10DE); first is shown
  unsigned compute_capability_major = 0;
  unsigned compute_capability_minor = 0;
  std::int64_t memory_total_mib = 0;
  unsigned placement_units = 0;  // 8 on 7-slice chips, 4 on A30, 12 on RTX PRO 6000; 0 without MIG
  unsigned compute_slices = 0;   // 7 or 4; 0 without MIG
  MigModeRules mig;
  GpuInstanceIdMap instance_id_map = GpuInstanceIdMap::kIdentity;
  std::vector<GpuInstanceProfile> profiles;  // in the order nvidia-smi lists; empty without MIG
  bool has_rev1_compute_profile = false;     // Hopper: a second 1c profile with more processors
  unsigned first_driver_branch = 0;          // the first with MIG for it: 450; 0 = unknown
  std::string provenance;                    // where the numbers come from, what is estimated
};

// Every model known, sorted by generation and size.
const std::vector<GpuModel>& gpu_models();

// By key, product name (with or without "NVIDIA ") or chip name with memory, ignoring case.
// kNotFound names what exists and the nearest name.
Result<const GpuModel*> find_gpu_model(std::string_view name);

// The profile with this id, or null.
const GpuInstanceProfile* find_profile(const GpuModel& model, ProfileId id);

// The compute instance profiles inside a GPU instance of this profile, ascending by slices; the
// full one (the default of nvidia-smi -C) carries the GPU instance's name.
std::vector<ComputeInstanceProfile> compute_profiles(const GpuModel& model,
                                                     const GpuInstanceProfile& profile);

}  // namespace septet::gpu
