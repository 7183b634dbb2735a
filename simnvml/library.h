// Library: the process's one connection to a simulated node, behind the C interface of NVML.
//
// NVML has no context argument, so this is the one place of septet with process-wide state: a count
// of nvmlInit() calls and the store. It is never destroyed (no work at exit of foreign processes),
// starts no thread and prints nothing unless SEPTET_SIMNVML_TRACE is set. Thread-safe.
//
// Handles are numbers in pointers' clothes, the same in every process and after every nvmlInit():
//
//   63        32 31    24 23    16 15     8 7      0
//   +-----------+--------+--------+--------+--------+
//   | 0x5E97E7  | kind   | GPU    | GI id  | CI id  |
//   +-----------+--------+--------+--------+--------+
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "gpu/edge/simulation_store.h"
#include "gpu/nvml_abi.h"
#include "gpu/nvml_code.h"
#include "gpu/simulated_node.h"

namespace septet::simnvml {

namespace abi = gpu::abi;
using gpu::NvmlCode;

enum class HandleKind : std::uint8_t { kGpu = 1, kMigDevice, kGpuInstance, kComputeInstance };

struct Handle {
  HandleKind kind = HandleKind::kGpu;
  unsigned gpu = 0;
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
};

void* to_pointer(const Handle& handle);
std::optional<Handle> from_pointer(const void* pointer);

inline abi::Device device_handle(unsigned gpu) {
  return static_cast<abi::Device>(to_pointer({HandleKind::kGpu, gpu, 0, 0}));
}

enum class Access { kRead, kWrite };

// What a function of the interface sees of the node. References are valid during the call.
struct CallContext {
  gpu::SimulatedNode& node;
  gpu::SimulatedGpu& gpu;
  const Handle& handle;
  const gpu::CallVerdict& verdict;
};

class Library {
 public:
  NvmlCode init();
  NvmlCode shutdown();

  // Runs one call on the device behind `pointer`, under the fault plan. `function` is NVML's name
  // without "nvml" and version. kInvalidArgument for a foreign pointer, kNotFound for an instance
  // that is gone.
  abi::Return call(std::string_view function, Access access, const void* pointer,
                   const std::function<NvmlCode(CallContext&)>& work);
  // The same for a call that names no device.
  abi::Return system_call(std::string_view function,
                          const std::function<NvmlCode(gpu::SimulatedNode&)>& work);

  // Takes the oldest waiting Xid of one of these GPUs (a bit each).
  std::optional<gpu::XidEvent> take_event(std::uint64_t gpus);

 private:
  std::shared_ptr<const gpu::SimulationStore> store() const;
  // Counts the call where a fault may meet it; carries out delay and death before the work.
  NvmlCode begin(const gpu::SimulationStore& store, const gpu::CallSite& site,
                 gpu::CallVerdict& verdict);
  NvmlCode work_on(const gpu::SimulationStore& store, Access access, const Handle& handle,
                   const gpu::CallVerdict& verdict,
                   const std::function<NvmlCode(CallContext&)>& work);

  mutable std::mutex mutex_;
  unsigned initialised_ = 0;
  std::shared_ptr<const gpu::SimulationStore> store_;
};

Library& library();

// Copies text with its end; kInsufficientSize where it does not fit.
NvmlCode copy_text(const std::string& text, char* out, unsigned size);

// The list convention: null asks for the count, a known capacity that is too small gets
// kInsufficientSize and the count.
template <typename Items, typename T, typename F>
NvmlCode copy_list(const Items& items, T* out, unsigned* count, F convert) {
  if (count == nullptr) {
    return NvmlCode::kInvalidArgument;
  }
  const auto needed = static_cast<unsigned>(items.size());
  const unsigned capacity = *count;
  *count = needed;
  if (out == nullptr) {
    return NvmlCode::kSuccess;
  }
  if (capacity != 0 && capacity < needed) {
    return NvmlCode::kInsufficientSize;
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    out[i] = convert(items[i]);
  }
  return NvmlCode::kSuccess;
}

}  // namespace septet::simnvml

#define SEPTET_NVML extern "C" __attribute__((visibility("default"))) septet::gpu::abi::Return
