// Events: a client registers GPUs in a set and waits for Xids that the fault plan raises.
#include <time.h>

#include <map>
#include <mutex>

#include "library.h"

using namespace septet::simnvml;  // NOLINT: the C interface lives outside

namespace {

constexpr std::uint64_t kAllEvents = abi::kEventXid;
constexpr int kPollMilliseconds = 10;

// The sets that clients made: the GPUs (a bit each) that each of them watches.
class EventSets {
 public:
  abi::EventSet create() {
    const std::scoped_lock guard(mutex_);
    sets_[++last_] = 0;
    return reinterpret_cast<abi::EventSet>(last_);
  }
  NvmlCode watch(abi::EventSet set, unsigned gpu) {
    const std::scoped_lock guard(mutex_);
    const auto found = sets_.find(reinterpret_cast<std::uintptr_t>(set));
    if (found == sets_.end()) {
      return NvmlCode::kInvalidArgument;
    }
    found->second |= 1ULL << gpu;
    return NvmlCode::kSuccess;
  }
  std::optional<std::uint64_t> gpus(abi::EventSet set) {
    const std::scoped_lock guard(mutex_);
    const auto found = sets_.find(reinterpret_cast<std::uintptr_t>(set));
    return found == sets_.end() ? std::nullopt : std::optional(found->second);
  }
  bool free(abi::EventSet set) {
    const std::scoped_lock guard(mutex_);
    return sets_.erase(reinterpret_cast<std::uintptr_t>(set)) == 1;
  }

 private:
  std::mutex mutex_;
  std::uintptr_t last_ = 0;
  std::map<std::uintptr_t, std::uint64_t> sets_;
};

// Process-wide because NVML's interface is; leaked as library() is.
EventSets& event_sets() {
  static EventSets* const sets = new EventSets;
  return *sets;
}

abi::Return wait_for_event(abi::EventSet set, abi::EventData* data, unsigned timeout_ms) try {
  const auto gpus = event_sets().gpus(set);
  if (!gpus || data == nullptr) {
    return static_cast<abi::Return>(NvmlCode::kInvalidArgument);
  }
  for (unsigned waited = 0;; waited += kPollMilliseconds) {
    if (const auto event = library().take_event(*gpus)) {
      *data = {device_handle(event->gpu), abi::kEventXid, event->xid,
               event->gpu_instance.value_or(abi::kNoInstance), abi::kNoInstance};
      return static_cast<abi::Return>(NvmlCode::kSuccess);
    }
    if (waited >= timeout_ms) {
      return static_cast<abi::Return>(NvmlCode::kTimeout);
    }
    const timespec pause{0, kPollMilliseconds * 1'000'000L};
    ::nanosleep(&pause, nullptr);
  }
} catch (...) {
  return static_cast<abi::Return>(NvmlCode::kUnknown);
}

}  // namespace

SEPTET_NVML nvmlEventSetCreate(abi::EventSet* set) {
  return library().system_call("EventSetCreate", [&](septet::gpu::SimulatedNode& /*node*/) {
    if (set == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    *set = event_sets().create();
    return NvmlCode::kSuccess;
  });
}

SEPTET_NVML nvmlEventSetFree(abi::EventSet set) {
  return static_cast<abi::Return>(event_sets().free(set) ? NvmlCode::kSuccess
                                                         : NvmlCode::kInvalidArgument);
}

SEPTET_NVML nvmlDeviceGetSupportedEventTypes(abi::Device device, std::uint64_t* types) {
  return library().call("DeviceGetSupportedEventTypes", Access::kRead, device,
                        [&](CallContext& /*call*/) {
                          if (types == nullptr) {
                            return NvmlCode::kInvalidArgument;
                          }
                          *types = kAllEvents;
                          return NvmlCode::kSuccess;
                        });
}

SEPTET_NVML nvmlDeviceRegisterEvents(abi::Device device, std::uint64_t types, abi::EventSet set) {
  return library().call("DeviceRegisterEvents", Access::kRead, device, [&](CallContext& call) {
    if ((types & ~kAllEvents) != 0) {
      return NvmlCode::kNotSupported;
    }
    return event_sets().watch(set, call.handle.gpu);
  });
}

SEPTET_NVML nvmlEventSetWait(abi::EventSet set, abi::EventData* data, unsigned timeout_ms) {
  return wait_for_event(set, data, timeout_ms);
}
SEPTET_NVML nvmlEventSetWait_v2(abi::EventSet set, abi::EventData* data, unsigned timeout_ms) {
  return wait_for_event(set, data, timeout_ms);
}
