#include "library.h"

#include <fmt/format.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace septet::simnvml {
namespace {

constexpr std::uintptr_t kHandleMark = 0x5E97E7;

void trace(std::string_view function, NvmlCode code) {
  static const bool wanted = std::getenv("SEPTET_SIMNVML_TRACE") != nullptr;
  if (wanted) {
    fmt::print(stderr, "simnvml[{}]: nvml{} -> {} {}\n", ::getpid(), function,
               static_cast<int>(code), gpu::error_string(code));
  }
}

NvmlCode code_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kNotFound:
      return NvmlCode::kDriverNotLoaded;
    case ErrorKind::kPermission:
      return NvmlCode::kNoPermission;
    case ErrorKind::kFailed:
    case ErrorKind::kUsage:
    case ErrorKind::kPrecondition:
    case ErrorKind::kVerification:
    case ErrorKind::kResetNeeded:
    case ErrorKind::kNoCapacity:
      return NvmlCode::kUnknown;
  }
  return NvmlCode::kUnknown;
}

void wait_for(Duration delay) {
  timespec left{delay.count() / 1'000'000'000, delay.count() % 1'000'000'000};
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

void die_if(bool now) {
  if (now) {
    ::raise(SIGKILL);
  }
}

// Whether the instance behind the handle is still there.
bool is_present(const gpu::SimulatedGpu& gpu, const Handle& handle) {
  if (handle.kind == HandleKind::kGpu) {
    return true;
  }
  const gpu::GpuInstance* instance =
      gpu::find_instance(gpu, gpu::GpuInstanceId(handle.gpu_instance));
  if (instance == nullptr || handle.kind == HandleKind::kGpuInstance) {
    return instance != nullptr;
  }
  for (const gpu::ComputeInstance& compute : instance->compute_instances) {
    if (compute.id.value() == handle.compute_instance) {
      return true;
    }
  }
  return false;
}

}  // namespace

void* to_pointer(const Handle& handle) {
  const std::uintptr_t value = (kHandleMark << 32U) |
                               (static_cast<std::uintptr_t>(handle.kind) << 24U) |
                               (static_cast<std::uintptr_t>(handle.gpu) << 16U) |
                               (static_cast<std::uintptr_t>(handle.gpu_instance) << 8U) |
                               static_cast<std::uintptr_t>(handle.compute_instance);
  return reinterpret_cast<void*>(value);
}

std::optional<Handle> from_pointer(const void* pointer) {
  const auto value = reinterpret_cast<std::uintptr_t>(pointer);
  const auto kind = (value >> 24U) & 0xFF;
  if (value >> 32U != kHandleMark || kind < 1 || kind > 4) {
    return std::nullopt;
  }
  return Handle{static_cast<HandleKind>(kind), static_cast<unsigned>((value >> 16U) & 0xFF),
                static_cast<unsigned>((value >> 8U) & 0xFF), static_cast<unsigned>(value & 0xFF)};
}

Library& library() {
  // Leaked on purpose: foreign processes may call from their own exit handlers.
  static Library* const the_library = new Library;
  return *the_library;
}

NvmlCode Library::init() {
  const std::scoped_lock guard(mutex_);
  const char* directory = std::getenv("SEPTET_SIMNVML_STATE");
  if (directory == nullptr || *directory == '\0') {
    return NvmlCode::kDriverNotLoaded;
  }
  if (store_ == nullptr || store_->directory() != directory) {
    store_ = std::make_shared<const gpu::SimulationStore>(directory);
  }
  const auto node = store_->read();
  if (!node.ok()) {
    return code_of(node.error());
  }
  ++initialised_;
  return NvmlCode::kSuccess;
}

NvmlCode Library::shutdown() {
  const std::scoped_lock guard(mutex_);
  if (initialised_ == 0) {
    return NvmlCode::kUninitialized;
  }
  --initialised_;
  return NvmlCode::kSuccess;
}

std::shared_ptr<const gpu::SimulationStore> Library::store() const {
  const std::scoped_lock guard(mutex_);
  return initialised_ == 0 ? nullptr : store_;
}

NvmlCode Library::begin(const gpu::SimulationStore& store, const gpu::CallSite& site,
                        gpu::CallVerdict& verdict) {
  const auto node = store.read();
  if (!node.ok()) {
    return code_of(node.error());
  }
  const bool is_lost = site.gpu && *site.gpu < node->gpus.size() && node->gpus[*site.gpu].lost;
  if (!has_live_faults(*node) && !is_lost) {
    return NvmlCode::kSuccess;
  }
  const auto counted =
      store.update([&](gpu::SimulatedNode& changed) { verdict = gpu::begin_call(changed, site); });
  if (!counted.ok()) {
    return code_of(counted.error());
  }
  wait_for(verdict.delay);
  die_if(verdict.kill == gpu::KillMoment::kBefore);
  return NvmlCode::kSuccess;
}

NvmlCode Library::work_on(const gpu::SimulationStore& store, Access access, const Handle& handle,
                          const gpu::CallVerdict& verdict,
                          const std::function<NvmlCode(CallContext&)>& work) {
  NvmlCode code = NvmlCode::kUnknown;
  const auto run = [&](gpu::SimulatedNode& node) {
    if (handle.gpu >= node.gpus.size()) {
      code = NvmlCode::kInvalidArgument;
      return;
    }
    gpu::SimulatedGpu& device = node.gpus[handle.gpu];
    if (!is_present(device, handle)) {
      code = NvmlCode::kNotFound;
      return;
    }
    if (access == Access::kWrite && node.config.requires_root && ::geteuid() != 0) {
      code = NvmlCode::kNoPermission;
      return;
    }
    CallContext context{node, device, handle, verdict};
    code = work(context);
  };
  // Without effect the work is done on a copy, so that the answer is still a plausible one.
  if (access == Access::kRead || !verdict.applies) {
    auto node = store.read();
    if (!node.ok()) {
      return code_of(node.error());
    }
    run(*node);
    return code;
  }
  const auto updated = store.update(run);
  return updated.ok() ? code : code_of(updated.error());
}

abi::Return Library::call(std::string_view function, Access access, const void* pointer,
                          const std::function<NvmlCode(CallContext&)>& work) try {
  NvmlCode code = NvmlCode::kUninitialized;
  if (const auto store_now = store(); store_now != nullptr) {
    const auto handle = from_pointer(pointer);
    gpu::CallVerdict verdict;
    code = NvmlCode::kInvalidArgument;
    if (handle) {
      gpu::CallSite site{function, handle->gpu, std::nullopt};
      if (handle->kind != HandleKind::kGpu) {
        site.gpu_instance = handle->gpu_instance;
      }
      code = begin(*store_now, site, verdict);
    }
    if (code == NvmlCode::kSuccess) {
      const bool is_failing = verdict.code && *verdict.code != NvmlCode::kSuccess;
      if (verdict.applies || !is_failing) {
        code = work_on(*store_now, access, *handle, verdict, work);
      }
      code = verdict.code.value_or(code);
      die_if(verdict.kill == gpu::KillMoment::kAfter);
    }
  }
  trace(function, code);
  return static_cast<abi::Return>(code);
} catch (...) {
  return static_cast<abi::Return>(NvmlCode::kUnknown);
}

abi::Return Library::system_call(std::string_view function,
                                 const std::function<NvmlCode(gpu::SimulatedNode&)>& work) try {
  NvmlCode code = NvmlCode::kUninitialized;
  if (const auto store_now = store(); store_now != nullptr) {
    gpu::CallVerdict verdict;
    code = begin(*store_now, {function, std::nullopt, std::nullopt}, verdict);
    if (code == NvmlCode::kSuccess) {
      auto node = store_now->read();
      code = node.ok() ? work(*node) : code_of(node.error());
      code = verdict.code.value_or(code);
      die_if(verdict.kill == gpu::KillMoment::kAfter);
    }
  }
  trace(function, code);
  return static_cast<abi::Return>(code);
} catch (...) {
  return static_cast<abi::Return>(NvmlCode::kUnknown);
}

std::optional<gpu::XidEvent> Library::take_event(std::uint64_t gpus) {
  const auto store_now = store();
  std::optional<gpu::XidEvent> taken;
  const auto is_wanted = [&](const gpu::XidEvent& event) { return (gpus >> event.gpu & 1U) != 0; };
  if (store_now == nullptr) {
    return taken;
  }
  const auto seen = store_now->read();
  if (!seen.ok() || std::none_of(seen->events.begin(), seen->events.end(), is_wanted)) {
    return taken;
  }
  static_cast<void>(store_now->update([&](gpu::SimulatedNode& node) {
    const auto found = std::find_if(node.events.begin(), node.events.end(), is_wanted);
    if (found != node.events.end()) {
      taken = *found;
      node.events.erase(found);
    }
  }));
  return taken;
}

NvmlCode copy_text(const std::string& text, char* out, unsigned size) {
  if (out == nullptr) {
    return NvmlCode::kInvalidArgument;
  }
  if (text.size() + 1 > size) {
    return NvmlCode::kInsufficientSize;
  }
  std::memcpy(out, text.c_str(), text.size() + 1);
  return NvmlCode::kSuccess;
}

}  // namespace septet::simnvml
