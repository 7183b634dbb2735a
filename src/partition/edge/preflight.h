// What is looked at before a GPU is touched: the mode, who holds it; and asking ours to leave.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "gpu/gpu_driver.h"
#include "gpu/types.h"
#include "partition/gpu_plan.h"

namespace septet::partition {

// How to look for holders, and whether ours may be asked to leave.
struct HolderPolicy {
  bool simulated = false;
  std::string root;               // before every path of /proc
  std::optional<Duration> drain;  // nothing: nobody is asked
};

// kPrecondition: no MIG, or a mode change while somebody holds the GPU (named); kResetNeeded: a
// mode change waits already.
Result<Ok> check_mode(const gpu::GpuState& state, gpu::MigMode wanted, const HolderPolicy& policy);

// Lets septet's own processes leave the busy instances that the plan destroys, or the whole GPU
// when its mode changes. True when somebody left: observe and plan anew. kPrecondition names those
// who stayed.
Result<bool> drain_for(const gpu::GpuState& state, const GpuPlan& plan, const HolderPolicy& policy);

// The error with the holders' users, units and containers, when it is about being in use.
Error with_holders(Error error, const gpu::GpuState& state, const HolderPolicy& policy);

}  // namespace septet::partition
