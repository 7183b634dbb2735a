// LeaseGround: what a lease stands on in this machine: limits, groups of processes, sharing
// daemons.
//
// One production implementation (CgroupGround, lend/edge/cgroup_ground.h); tests of the Lender play
// their own. Owned by main(), called by the Lender's thread. Calls return soon: whatever takes
// longer has a deadline inside.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/result.h"
#include "lend/environment.h"
#include "lend/ledger.h"
#include "lend/types.h"
#include "os/lasting_cgroup.h"

namespace septet::lend {

class LeaseGround {
 public:
  virtual ~LeaseGround() = default;

  // Ends what is left of leases that the ledger does not know: it was replaced while they ran.
  // Once, before anything is lent.
  virtual void end_unknown(const std::set<LeaseId>& known) = 0;
  // Sets up what the lease needs. Called again after a crash of the daemon: takes over what is
  // there, processes included.
  virtual Result<LeaseSetting> set_up(const Lease& lease,
                                      const std::vector<Partition>& partitions) = 0;
  // Puts a process, with what it will start, under the lease's limits.
  virtual Result<Ok> add_process(LeaseId lease, pid_t pid) = 0;
  virtual std::vector<int> processes(LeaseId lease) = 0;
  virtual void ask_to_end(LeaseId lease) = 0;
  virtual void kill(LeaseId lease) = 0;
  virtual Result<Ok> set_paused(LeaseId lease, os::Frozen frozen) = 0;
  // Nothing of the lease is left afterwards; only when no process is. Harmless when nothing is.
  virtual Result<Ok> take_down(LeaseId lease) = 0;
  // Whether the lease's processes worked since the last call.
  virtual Activity observe(const Lease& lease) = 0;
};

}  // namespace septet::lend
