// The part of NVML's C interface that septet speaks, declared by us: structs, sizes, constants.
//
// Used from both sides: gpu/edge/nvml_driver calls a library through it, simnvml/ is such a
// library. Layouts: x86-64 and aarch64 System V, from NVML's public documentation; the asserts hold
// them. A version field is (version << 24) | sizeof.
#pragma once

#include <cstddef>
#include <cstdint>

namespace septet::gpu::abi {

using Return = int;  // an NvmlCode
// Opaque: whatever the library hands out, passed back by value.
using Device = struct OpaqueDevice*;
using GpuInstance = struct OpaqueGpuInstance*;
using ComputeInstance = struct OpaqueComputeInstance*;
using EventSet = struct OpaqueEventSet*;

constexpr std::uint32_t version_of(std::uint32_t version, std::size_t size) {
  return (version << 24U) | static_cast<std::uint32_t>(size);
}

inline constexpr std::uint32_t kNoInstance = 0xFFFFFFFF;  // "not in a GPU instance"
inline constexpr unsigned kGpuInstanceProfileCount = 0x12;
inline constexpr unsigned kComputeInstanceProfileCount = 9;
inline constexpr unsigned kUuidSize = 80;
inline constexpr unsigned kNameSize = 64;
inline constexpr unsigned kVersionSize = 80;
inline constexpr std::uint64_t kEventXid = 8;

struct PciInfo {
  char bus_id_legacy[16];
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t pci_device_id;
  std::uint32_t pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, bus_id) == 36);

struct Memory {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(Memory) == 24);

struct MemoryV2 {
  std::uint32_t version;
  std::uint64_t total;
  std::uint64_t reserved;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, used) == 32);

struct Placement {
  std::uint32_t start;
  std::uint32_t size;
};

struct GpuInstanceProfileInfo {
  std::uint32_t id;
  std::uint32_t is_p2p_supported;
  std::uint32_t slice_count;
  std::uint32_t instance_count;
  std::uint32_t multiprocessor_count;
  std::uint32_t copy_engine_count;
  std::uint32_t decoder_count;
  std::uint32_t encoder_count;
  std::uint32_t jpeg_count;
  std::uint32_t ofa_count;
  std::uint64_t memory_size_mib;
};
static_assert(sizeof(GpuInstanceProfileInfo) == 48);

struct GpuInstanceProfileInfoV2 {
  std::uint32_t version;
  std::uint32_t id;
  std::uint32_t is_p2p_supported;
  std::uint32_t slice_count;
  std::uint32_t instance_count;
  std::uint32_t multiprocessor_count;
  std::uint32_t copy_engine_count;
  std::uint32_t decoder_count;
  std::uint32_t encoder_count;
  std::uint32_t jpeg_count;
  std::uint32_t ofa_count;
  std::uint64_t memory_size_mib;
  char name[96];
};
static_assert(sizeof(GpuInstanceProfileInfoV2) == 152 &&
              offsetof(GpuInstanceProfileInfoV2, name) == 56);

struct GpuInstanceProfileInfoV3 {
  std::uint32_t version;
  std::uint32_t id;
  std::uint32_t slice_count;
  std::uint32_t instance_count;
  std::uint32_t multiprocessor_count;
  std::uint32_t copy_engine_count;
  std::uint32_t decoder_count;
  std::uint32_t encoder_count;
  std::uint32_t jpeg_count;
  std::uint32_t ofa_count;
  std::uint64_t memory_size_mib;
  char name[96];
  std::uint32_t capabilities;
};
static_assert(sizeof(GpuInstanceProfileInfoV3) == 152 &&
              offsetof(GpuInstanceProfileInfoV3, capabilities) == 144);

struct GpuInstanceInfo {
  Device device;
  std::uint32_t id;
  std::uint32_t profile_id;
  Placement placement;
};
static_assert(sizeof(GpuInstanceInfo) == 24);

struct ComputeInstanceProfileInfo {
  std::uint32_t id;
  std::uint32_t slice_count;
  std::uint32_t instance_count;
  std::uint32_t multiprocessor_count;
  std::uint32_t copy_engine_count;
  std::uint32_t decoder_count;
  std::uint32_t encoder_count;
  std::uint32_t jpeg_count;
  std::uint32_t ofa_count;
};
static_assert(sizeof(ComputeInstanceProfileInfo) == 36);

struct ComputeInstanceProfileInfoV2 {
  std::uint32_t version;
  ComputeInstanceProfileInfo v1;
  char name[96];
};
static_assert(sizeof(ComputeInstanceProfileInfoV2) == 136);

struct ComputeInstanceProfileInfoV3 {
  std::uint32_t version;
  ComputeInstanceProfileInfo v1;
  char name[96];
  std::uint32_t capabilities;
};
static_assert(sizeof(ComputeInstanceProfileInfoV3) == 140);

struct ComputeInstanceInfo {
  Device device;
  GpuInstance gpu_instance;
  std::uint32_t id;
  std::uint32_t profile_id;
  Placement placement;
};
static_assert(sizeof(ComputeInstanceInfo) == 32);

struct DeviceAttributes {
  std::uint32_t multiprocessor_count;
  std::uint32_t copy_engine_count;
  std::uint32_t decoder_count;
  std::uint32_t encoder_count;
  std::uint32_t jpeg_count;
  std::uint32_t ofa_count;
  std::uint32_t gpu_instance_slice_count;
  std::uint32_t compute_instance_slice_count;
  std::uint64_t memory_size_mib;
};
static_assert(sizeof(DeviceAttributes) == 40);

struct ProcessInfoV1 {
  std::uint32_t pid;
  std::uint64_t used_gpu_memory;
};
static_assert(sizeof(ProcessInfoV1) == 16);

// The second and third version are the same.
struct ProcessInfo {
  std::uint32_t pid;
  std::uint64_t used_gpu_memory;
  std::uint32_t gpu_instance_id;
  std::uint32_t compute_instance_id;
};
static_assert(sizeof(ProcessInfo) == 24);

struct EventData {
  Device device;
  std::uint64_t event_type;
  std::uint64_t event_data;  // the Xid
  std::uint32_t gpu_instance_id;
  std::uint32_t compute_instance_id;
};
static_assert(sizeof(EventData) == 32);

struct Utilization {
  std::uint32_t gpu;
  std::uint32_t memory;
};

struct FieldValue {
  std::uint32_t field_id;
  std::uint32_t scope_id;
  std::int64_t timestamp;
  std::int64_t latency_us;
  std::uint32_t value_type;
  Return result;
  std::uint64_t value;
};
static_assert(sizeof(FieldValue) == 40);

}  // namespace septet::gpu::abi
