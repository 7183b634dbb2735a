#include "partition/edge/preflight.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "partition/edge/holders.h"

namespace septet::partition {
namespace {

std::string gpu_text(const gpu::GpuState& state) {
  return fmt::format("GPU {} ({})", state.index, state.name);
}

bool destroys_busy(const GpuPlan& plan, const std::optional<gpu::GpuInstanceId>& instance) {
  return std::any_of(plan.plan.destroy.begin(), plan.plan.destroy.end(), [&](const auto& gone) {
    return gone.occupancy == Occupancy::kBusy && gone.instance.id == instance;
  });
}

}  // namespace

Result<Ok> check_mode(const gpu::GpuState& state, gpu::MigMode wanted, const HolderPolicy& policy) {
  if (state.mig_current == gpu::MigMode::kUnsupported) {
    return make_error(ErrorKind::kPrecondition,
                      fmt::format("{} cannot be partitioned: it has no MIG", gpu_text(state)),
                      "septet advise names the techniques that work on it");
  }
  if (state.mig_current == wanted) {
    if (state.mig_pending == wanted) {
      return Ok{};
    }
    return make_error(ErrorKind::kResetNeeded,
                      fmt::format("{} waits for a change of MIG mode", gpu_text(state)),
                      "reset the GPU (nvidia-smi --gpu-reset) or reboot, then repeat");
  }
  const std::vector<Holder> holders = find_holders(state, policy.simulated, policy.root);
  const bool all_may_leave =
      policy.drain &&
      std::all_of(holders.begin(), holders.end(), [](const Holder& holder) { return holder.ours; });
  if (holders.empty() || all_may_leave) {
    return Ok{};
  }
  return make_error(ErrorKind::kPrecondition,
                    fmt::format("cannot change the MIG mode of {}: it is {}", gpu_text(state),
                                holders_text(holders)),
                    holders_hint(holders));
}

Result<bool> drain_for(const gpu::GpuState& state, const GpuPlan& plan,
                       const HolderPolicy& policy) {
  if (!policy.drain) {
    return false;
  }
  const bool mode_changes = state.mig_current != gpu::MigMode::kEnabled;
  std::vector<Holder> holders = find_holders(state, policy.simulated, policy.root);
  std::erase_if(holders, [&](const Holder& holder) {
    return !mode_changes && !destroys_busy(plan, holder.gpu_instance);
  });
  if (holders.empty()) {
    return false;
  }
  const std::vector<Holder> left = drain(std::move(holders), *policy.drain);
  if (!left.empty()) {
    return make_error(ErrorKind::kPrecondition,
                      fmt::format("{} is still {}", gpu_text(state), holders_text(left)),
                      holders_hint(left));
  }
  return true;
}

Error with_holders(Error error, const gpu::GpuState& state, const HolderPolicy& policy) {
  if (error.kind != ErrorKind::kPrecondition) {
    return error;
  }
  const std::vector<Holder> holders = find_holders(state, policy.simulated, policy.root);
  std::vector<std::string> more;
  const bool said =
      !holders.empty() && error.message.find(holders.front().text()) != std::string::npos;
  if (!holders.empty() && !said) {
    more.push_back(
        fmt::format("{} is {}: {}", gpu_text(state), holders_text(holders), holders_hint(holders)));
  }
  if (!policy.simulated) {
    const std::vector<std::string> modules = blocking_modules(policy.root);
    if (!modules.empty()) {
      more.push_back("kernel modules that may block it: " + join_words(modules));
    }
  }
  if (!more.empty()) {
    error.hint += fmt::format("{}{}", error.hint.empty() ? "" : "; ", fmt::join(more, "; "));
  }
  return error;
}

}  // namespace septet::partition
