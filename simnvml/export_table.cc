// nvmlInternalGetExportTable: the undocumented table that only nvidia-smi asks for.
//
//   slot 0      size of the table in bytes
//   slot 81     (index, device*, 0x22): a handle by index
//   slot 213-5  (device, count*, records*): compute, MPS, graphics processes, 4128 bytes each
//   slot 230    (device, unsigned*): host's PCIe generation
//   all others  "not supported", each slot a real function so that no call goes to null
//
// Slots as observed with nvidia-smi 535 and published for 580. Slots differ in their number of
// arguments; a function with more parameters than it is given must not read them.
#include <algorithm>
#include <array>
#include <cstring>

#include "processes.h"

using namespace septet::simnvml;  // NOLINT: the C interface lives outside
using septet::gpu::ClientKind;
using septet::gpu::SimulatedClient;

SEPTET_NVML nvmlDeviceGetHandleByIndex(unsigned index, abi::Device* device);

namespace {

constexpr std::size_t kSlots = 512;
constexpr std::uint64_t kSizeInBytes = 0x1000;
constexpr std::array<std::uint8_t, 16> kTableId = {0xC4, 0xFE, 0x3E, 0x6C, 0xC9, 0x8F, 0x6C, 0x4E,
                                                   0xA3, 0x27, 0xEE, 0x69, 0x6E, 0x12, 0xF7, 0xC4};

struct ProcessRecord {
  std::uint32_t pid;
  std::uint64_t used_gpu_memory;
  std::uint32_t gpu_instance_id;
  std::uint32_t compute_instance_id;
  std::uint64_t protected_memory;
  char name[4096];
};
static_assert(sizeof(ProcessRecord) == 4128);

// Rows beyond the capacity are left out; the count is always written, or phantoms appear.
abi::Return list_processes(abi::Device device, unsigned* count, ProcessRecord* out,
                           ClientKind kind) {
  if (count == nullptr) {
    return static_cast<abi::Return>(NvmlCode::kInvalidArgument);
  }
  const unsigned capacity = *count;
  *count = 0;
  return library().call("ExportedProcessList", Access::kRead, device, [&](CallContext& call) {
    const auto clients = clients_of(call, kind);
    for (const SimulatedClient& client : clients) {
      if (out == nullptr || *count >= capacity) {
        break;
      }
      ProcessRecord& record = out[(*count)++];
      record = {};
      record.pid = static_cast<std::uint32_t>(client.pid);
      record.used_gpu_memory = static_cast<std::uint64_t>(client.used_memory_bytes);
      record.gpu_instance_id = client.gpu_instance.value_or(abi::kNoInstance);
      record.compute_instance_id = client.compute_instance.value_or(abi::kNoInstance);
      client.name.copy(record.name, sizeof record.name - 1);
    }
    return NvmlCode::kSuccess;
  });
}

abi::Return compute_processes(abi::Device device, unsigned* count, ProcessRecord* out) {
  return list_processes(device, count, out, ClientKind::kCompute);
}
abi::Return mps_processes(abi::Device device, unsigned* count, ProcessRecord* out) {
  return list_processes(device, count, out, ClientKind::kMps);
}
abi::Return graphics_processes(abi::Device device, unsigned* count, ProcessRecord* out) {
  return list_processes(device, count, out, ClientKind::kGraphics);
}

abi::Return handle_by_index(unsigned index, abi::Device* device, unsigned /*mark*/) {
  return nvmlDeviceGetHandleByIndex(index, device);
}

abi::Return host_pcie_generation(abi::Device /*device*/, unsigned* generation) {
  if (generation == nullptr) {
    return static_cast<abi::Return>(NvmlCode::kInvalidArgument);
  }
  *generation = 4;
  return 0;
}

abi::Return unknown_slot() { return static_cast<abi::Return>(NvmlCode::kNotSupported); }

// One entry, whatever its signature.
using Slot = const void*;

template <typename F>
Slot slot_of(F* function) {
  return reinterpret_cast<Slot>(function);
}

std::array<Slot, kSlots> make_table() {
  std::array<Slot, kSlots> table;
  table.fill(slot_of(unknown_slot));
  table[0] = reinterpret_cast<Slot>(kSizeInBytes);
  table[81] = slot_of(handle_by_index);
  table[213] = slot_of(compute_processes);
  table[214] = slot_of(mps_processes);
  table[215] = slot_of(graphics_processes);
  table[230] = slot_of(host_pcie_generation);
  return table;
}

}  // namespace

SEPTET_NVML nvmlInternalGetExportTable(const void** table, const std::uint8_t* id) {
  if (table == nullptr || id == nullptr) {
    return static_cast<abi::Return>(NvmlCode::kInvalidArgument);
  }
  if (!std::equal(kTableId.begin(), kTableId.end(), id)) {
    *table = nullptr;
    return static_cast<abi::Return>(NvmlCode::kNotSupported);
  }
  static const std::array<Slot, kSlots> the_table = make_table();
  *table = the_table.data();
  return static_cast<abi::Return>(NvmlCode::kSuccess);
}
