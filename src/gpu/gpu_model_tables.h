// The rows that tools/convert_gpu_models writes; only gpu_model.cc reads them.
#pragma once

#include <cstdint>
#include <span>

#include "gpu/gpu_model.h"

namespace septet::gpu {

struct ProfileRow {
  unsigned nvml_enum;
  unsigned id;
  const char* name;
  unsigned slices;
  unsigned max_instances;
  std::int64_t memory_mib;
  EngineCounts engines;    // multiprocessors, copy, decoders, encoders, jpeg, ofa
  const char* placements;  // "0,2,4:2": starts and size
};

struct ModelRow {
  const char* key;
  const char* other_key;  // chip name with memory, as published tables call it
  const char* chip;
  GpuArchitecture architecture;
  const char* names;           // separated by '|'
  const char* pci_device_ids;  // hexadecimal, separated by '|'
  unsigned compute_capability_major;
  unsigned compute_capability_minor;
  std::int64_t memory_total_mib;
  unsigned placement_units;
  unsigned compute_slices;
  MigModeRules mig;
  GpuInstanceIdMap instance_id_map;
  bool has_rev1_compute_profile;
  unsigned first_driver_branch;
  const char* provenance;
  std::span<const ProfileRow> profiles;
};

std::span<const ModelRow> gpu_model_rows();

}  // namespace septet::gpu
