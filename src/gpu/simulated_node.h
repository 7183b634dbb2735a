// SimulatedNode: the simulated GPUs of one machine, and the faults that its driver shall show.
//
// A value without I/O: time and process life are arguments, waiting and dying are answers that the
// caller carries out. Every NVML call goes through begin_call(), which counts it and says what the
// fault plan wants of it; then the caller works on the GPU (simulated_gpu.h).
// Owned by a store (gpu/edge/simulation_store.h) or by a test; one caller at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "gpu/simulated_gpu.h"

namespace septet::gpu {

enum class KillMoment { kNever, kBefore, kAfter };

// What another process does to the GPU just before the call.
struct ForeignHand {
  std::optional<unsigned> create_profile;  // creates a GPU instance, the driver choosing the place
  std::optional<unsigned> destroy_instance;  // destroys it with its compute instances
  bool operator==(const ForeignHand&) const = default;
};

// One line of a fault plan: which calls it meets, and what happens to them.
struct FaultRule {
  // NVML's name without "nvml" and version ("DeviceSetMigMode"); "*" at its end matches any rest;
  // or a word: create_gpu_instance, destroy_gpu_instance, create_compute_instance,
  // destroy_compute_instance, set_mig_mode, write (all of these), any.
  std::string call;
  std::optional<unsigned> gpu;           // only on this GPU
  std::optional<unsigned> gpu_instance;  // only for this GPU instance
  std::uint64_t first = 1;               // from the first-th matching call,
  std::uint64_t count = 1;               // this many of them; 0 = for ever
  double probability = 1;                // of those, each with this probability

  std::optional<NvmlCode> code;        // answered instead of the true one
  bool takes_effect = false;           // with a code: the work is done nevertheless
  std::optional<NvmlCode> activation;  // SetMigMode: the status apart from the return code
  Duration delay{0};                   // the call takes this long
  KillMoment kill = KillMoment::kNever;
  bool loses_gpu = false;            // the GPU falls off the bus
  std::optional<std::uint64_t> xid;  // an Xid event is raised
  ForeignHand foreign;

  std::uint64_t seen = 0;  // matching calls so far
  bool operator==(const FaultRule&) const = default;
};

// An Xid that waits for a client to ask for events.
struct XidEvent {
  unsigned gpu = 0;
  std::uint64_t xid = 0;
  std::optional<unsigned> gpu_instance;
  bool operator==(const XidEvent&) const = default;
};

struct SimulatedNodeConfig {
  std::string name;  // how it was asked for: "A100-SXM4-40GBx2" or the file's name
  std::string driver_version = "535.261.03";
  std::string cuda_version = "12.2";
  bool answers_with_mig_off = true;  // profile queries with MIG off, as driver 580 does
  bool requires_root = false;        // writes by others are refused
  std::uint64_t seed = 1;
  bool operator==(const SimulatedNodeConfig&) const = default;
};

struct SimulatedNode {
  SimulatedNodeConfig config;
  std::vector<SimulatedGpu> gpus;
  std::vector<FaultRule> faults;
  std::vector<XidEvent> events;
  std::uint64_t calls = 0;       // all calls so far
  std::uint64_t generation = 0;  // of the stored state; the store counts it up
  bool operator==(const SimulatedNode&) const = default;
};

// "MODEL" or "MODELxN" (N from 1 to 32): a node of fresh GPUs, MIG off.
Result<SimulatedNode> make_simulated_node(std::string_view specification);

// Where a call goes. `function` is NVML's name without "nvml" and version.
struct CallSite {
  std::string_view function;
  std::optional<unsigned> gpu;
  std::optional<unsigned> gpu_instance;
};

// What the fault plan wants of a call.
struct CallVerdict {
  std::optional<NvmlCode> code;  // answer this
  bool applies = true;           // do the work
  std::optional<NvmlCode> activation;
  Duration delay{0};
  KillMoment kill = KillMoment::kNever;
};

// Counts the call and applies the plan: foreign hands, lost GPUs and Xids happen here.
CallVerdict begin_call(SimulatedNode& node, const CallSite& site);

// Whether any rule could still meet a call, so that callers may skip the counting where none can.
bool has_live_faults(const SimulatedNode& node);

// Whether a rule's `call` names this function.
bool names_call(std::string_view pattern, std::string_view function);

// Every GPU reboots; counters of the fault plan go on.
void reboot(SimulatedNode& node);

}  // namespace septet::gpu
