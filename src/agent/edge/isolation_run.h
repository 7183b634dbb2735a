// Runs the isolation experiment: clients on every replica, then one replica's memory grows.
//
// Blocking; called by a verb. The replica that outgrows its memory is a real one: `septet serve`
// with --fault-allocate, which allocates and touches memory from SIGUSR2 on, in its control group.
// The simulated GPU's memory is scaled down to what the replicas need and a little.
#pragma once

#include <atomic>

#include "agent/edge/deployment.h"
#include "agent/isolation.h"
#include "base/result.h"
#include "gpu/gpu_driver.h"

namespace septet::agent {

struct IsolationOptions {
  DeploymentOptions deployment;
  int concurrency = 2;               // of each client
  Duration before = seconds(6);      // measured before the fault
  Duration after_end = seconds(4);   // measured on, once the replica was ended for it
  Duration longest = seconds(120);   // measured from the fault on, if it is never ended
  int growth_mib_per_second = 1024;  // of the memory of the replica at fault
  std::uint64_t seed = 1;
};

Result<IsolationOutcome> run_isolation(gpu::GpuDriver& driver,
                                       const PlannedConfiguration& configuration,
                                       const IsolationOptions& options,
                                       const std::atomic<bool>& interrupted);

}  // namespace septet::agent
