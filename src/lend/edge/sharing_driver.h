// SharingDriver: what a shared partition needs beyond a group of processes: an MPS daemon, a length
// of time slices.
//
// The lend room knows no technique by name; whoever builds the daemon hands in the drivers of the
// partition room. Called by the Lender's thread.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "lend/environment.h"
#include "lend/types.h"

namespace septet::lend {

enum class Verified { kNo, kYes };

// On a partition that a daemon shares.
struct SharingProcesses {
  std::vector<int> servers;  // the daemon's own, which hold the GPU for its clients
  std::vector<int> clients;  // whom it limits; all others on the partition run without a limit
};

class SharingDriver {
 public:
  virtual ~SharingDriver() = default;
  // Makes the partition shared if it is not yet, and fills the setting. kYes when the limits were
  // read back and hold for whoever uses the setting.
  virtual Result<Verified> set_up(const Lease& lease, const Partition& partition,
                                  LeaseSetting& setting) = 0;
  // Who works on a partition that a daemon shares; nothing where none does.
  virtual std::optional<SharingProcesses> processes(const PartitionId& partition) = 0;
  // Right before these processes are killed: their work on the GPU is stopped in order.
  virtual void before_kill(const Lease& lease, const std::vector<int>& processes) = 0;
  // The lease is gone; after the last one on a partition it is no longer shared.
  virtual Result<Ok> take_down(const Lease& lease) = 0;
};

}  // namespace septet::lend
