// SimulatedGpu: one GPU that behaves as the driver's documentation and recordings say, without I/O.
//
// It enforces what hardware enforces: legal and free placements, maximum counts, media engines,
// instances in use, modes that stay pending. A plain value with its state in the open, so that a
// store can keep it in a file between calls; whoever owns it serialises the calls.
//
//   MIG off  --set_mode(on), idle-->  MIG on  --create/destroy-->  GPU instances {compute
//   instances}
//      |                                 |
//      +--- clients or a VM: pending ----+   (reboot makes a pending mode current)
//
// Creation and destruction of instances: simulated_instances.h. Several GPUs and faults:
// simulated_node.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/gpu_model.h"
#include "gpu/nvml_code.h"
#include "gpu/types.h"

namespace septet::gpu {

// Which free span an instance gets when the caller names none.
enum class PlacementPolicy {
  kDriver,  // leaves the most possible placements; what published sequences show
  kFirst,   // lowest start
  kLast,    // highest start
  kRandom,  // any, from the GPU's seed
  kR450,    // as kDriver, but the first 3g goes to 0 as the R450 documents show
};

enum class ClientKind { kCompute, kGraphics, kMps };

// A process that holds the GPU or a part of it. start_time is the process's start in clock ticks
// (field 22 of /proc/PID/stat); 0 = never checked for life.
struct SimulatedClient {
  std::int64_t pid = 0;
  std::uint64_t start_time = 0;
  std::string name;
  std::int64_t used_memory_bytes = 0;
  ClientKind kind = ClientKind::kCompute;
  std::optional<unsigned> gpu_instance;
  std::optional<unsigned> compute_instance;
  bool operator==(const SimulatedClient&) const = default;
};

// How one profile of this GPU differs from its model: another driver or firmware.
struct ProfileOverride {
  unsigned profile_id = 0;  // the model's id
  std::optional<unsigned> reported_id;
  std::optional<std::string> name;
  std::optional<std::int64_t> memory_mib;
  std::optional<unsigned> reported_max_instances;  // said, not enforced
  bool operator==(const ProfileOverride&) const = default;
};

struct SimulatedGpuConfig {
  std::string model;  // a GpuModel key
  unsigned index = 0;
  std::uint64_t seed = 1;
  PlacementPolicy placement = PlacementPolicy::kDriver;
  bool virtual_machine = false;    // a reset is impossible: a mode change waits for a reboot
  bool renumbers_on_mode = false;  // the device minor changes with the mode
  std::vector<ProfileOverride> overrides;
  bool operator==(const SimulatedGpuConfig&) const = default;
};

struct SimulatedGpu {
  SimulatedGpuConfig config;
  bool mig_current = false;
  bool mig_pending = false;
  bool persistence_mode = true;  // as with nvidia-persistenced
  bool lost = false;
  unsigned compute_mode = 0;  // NVML's number: 0 default, 2 prohibited, 3 exclusive process
  unsigned minor = 0;
  std::uint64_t created_gpu_instances = 0;      // over its life; seeds the UUIDs
  std::uint64_t created_compute_instances = 0;  // over its life
  std::vector<GpuInstance> instances;           // ascending by id
  std::vector<SimulatedClient> clients;
  bool operator==(const SimulatedGpu&) const = default;
};

// A fresh GPU, MIG off.
SimulatedGpu make_simulated_gpu(const SimulatedGpuConfig& config);

// What is fixed about it. The model named in the config exists (checked by whoever made the
// config).
const GpuModel& model_of(const SimulatedGpu& gpu);
// The profiles as this GPU reports them, overrides applied, in the model's order.
std::vector<GpuInstanceProfile> profiles_of(const SimulatedGpu& gpu);
std::string uuid_of(const SimulatedGpu& gpu);        // "GPU-..."
std::string pci_bus_id_of(const SimulatedGpu& gpu);  // "00000000:07:00.0"
unsigned pci_bus_of(const SimulatedGpu& gpu);
std::int64_t used_memory_bytes(const SimulatedGpu& gpu);
std::int64_t used_memory_bytes(const SimulatedGpu& gpu, GpuInstanceId instance);

// A version 4 shaped UUID, always the same for the same numbers.
std::string seeded_uuid(std::uint64_t seed, std::uint64_t a, std::uint64_t b, std::uint64_t c);

const GpuInstance* find_instance(const SimulatedGpu& gpu, GpuInstanceId id);

// One MIG device: a compute instance inside its GPU instance. The index of a MIG device is its
// place in mig_devices(): ascending by GPU instance id, then compute instance id. It moves when
// instances go.
struct MigDeviceRef {
  GpuInstanceId gpu_instance;
  ComputeInstanceId compute_instance;
  MigUuid uuid;
};
std::vector<MigDeviceRef> mig_devices(const SimulatedGpu& gpu);

// What SetMigMode answers: the call's own code, and whether the mode is active.
struct ModeAnswer {
  NvmlCode code = NvmlCode::kSuccess;
  NvmlCode activation = NvmlCode::kSuccess;  // in use or reset required: the mode is pending
};
// A forced activation (by a fault plan) leaves the mode pending with that status.
ModeAnswer set_mig_mode(SimulatedGpu& gpu, MigMode mode,
                        std::optional<NvmlCode> forced_activation = std::nullopt);

// A process opens the GPU or a part of it: not found without that part, in use never.
NvmlCode attach_client(SimulatedGpu& gpu, const SimulatedClient& client);
void detach_client(SimulatedGpu& gpu, std::int64_t pid);

// Instances and clients are gone; a pending mode becomes current where the chip keeps it.
void reboot(SimulatedGpu& gpu);

}  // namespace septet::gpu
