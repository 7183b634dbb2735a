// The words of a partitioned GPU: profile, placement, GPU instance, compute instance, MIG device.
//
//   placement units   0 1 2 3 4 5 6 7      (A100: 8; A30: 4; RTX PRO 6000: 12)
//                    +-------+-+-+---+
//                    | 3g    |1|1|2g |     every GPU instance spans [start, start + size)
//                    +-------+-+-+---+
//
// Values only; any thread may use its own copy. Rules and numbers: NVML's documentation and the
// driver's published behaviour, see docs/glossary.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id.h"

namespace septet::gpu {

using GpuUuid = Id<struct GpuUuidTag, std::string>;           // "GPU-..."
using MigUuid = Id<struct MigUuidTag, std::string>;           // "MIG-..."
using GpuInstanceId = Id<struct GpuInstanceIdTag, unsigned>;  // reused by the driver
using ComputeInstanceId = Id<struct ComputeInstanceIdTag, unsigned>;
using ProfileId = Id<struct ProfileIdTag, unsigned>;  // what -lgip shows, never the enum

// A span of placement units (of a GPU), or of compute slices (inside a GPU instance).
struct Placement {
  unsigned start = 0;
  unsigned size = 0;

  unsigned end() const { return start + size; }
  bool overlaps(const Placement& other) const { return start < other.end() && other.start < end(); }
  auto operator<=>(const Placement&) const = default;
};

// What engines and processors an instance has.
struct EngineCounts {
  unsigned multiprocessors = 0;
  unsigned copy_engines = 0;
  unsigned decoders = 0;
  unsigned encoders = 0;
  unsigned jpeg = 0;
  unsigned ofa = 0;
  bool operator==(const EngineCounts&) const = default;
};

struct GpuInstanceProfile {
  unsigned nvml_enum = 0;  // index for asking NVML; not the id
  ProfileId id;
  std::string name;     // "1g.5gb", without the "MIG " that NVML puts before it
  unsigned slices = 0;  // compute slices
  unsigned max_instances = 0;
  std::int64_t memory_mib = 0;
  EngineCounts engines;
  std::vector<Placement> placements;  // every legal span, ascending by start
  bool operator==(const GpuInstanceProfile&) const = default;
};

struct ComputeInstanceProfile {
  unsigned nvml_enum = 0;
  ProfileId id;
  std::string name;  // "1c.2g.10gb", or the GPU instance's name for the full one
  unsigned slices = 0;
  unsigned max_instances = 0;
  EngineCounts engines;  // multiprocessors are its own, the rest is shared in the GPU instance
  bool operator==(const ComputeInstanceProfile&) const = default;
};

struct ComputeInstance {
  ComputeInstanceId id;
  ProfileId profile_id;
  Placement placement;  // in compute slices of the GPU instance
  MigUuid uuid;         // of the MIG device it makes; new at every creation
  bool operator==(const ComputeInstance&) const = default;
};

struct GpuInstance {
  GpuInstanceId id;
  ProfileId profile_id;
  Placement placement;                             // in placement units of the GPU
  std::vector<ComputeInstance> compute_instances;  // ascending by id
  bool operator==(const GpuInstance&) const = default;
};

enum class MigMode { kUnsupported, kDisabled, kEnabled };

// A process that holds a GPU or an instance of it.
struct GpuProcess {
  std::int64_t pid = 0;
  std::string name;
  std::int64_t used_memory_bytes = 0;
  std::optional<GpuInstanceId> gpu_instance;
  std::optional<ComputeInstanceId> compute_instance;
  bool operator==(const GpuProcess&) const = default;
};

// One GPU as observed at one moment.
struct GpuState {
  unsigned index = 0;
  GpuUuid uuid;
  std::string name;        // "NVIDIA A100-SXM4-40GB"
  std::string pci_bus_id;  // "00000000:07:00.0"
  std::uint32_t pci_device_id = 0;
  std::int64_t memory_total_mib = 0;
  std::int64_t memory_used_mib = 0;
  MigMode mig_current = MigMode::kUnsupported;
  MigMode mig_pending = MigMode::kUnsupported;
  std::vector<GpuInstanceProfile> profiles;  // empty where MIG is unsupported
  std::vector<GpuInstance> instances;        // ascending by placement
  std::vector<GpuProcess> processes;
  bool operator==(const GpuState&) const = default;
};

}  // namespace septet::gpu
