// What can be lent on one GPU, from what the driver says about it.
//
// Pure; any thread.
#pragma once

#include <set>
#include <vector>

#include "gpu/types.h"
#include "lend/ledger.h"
#include "lend/types.h"

namespace septet::lend {

struct InventoryFacts {
  std::set<std::int64_t>
      known_processes{};     // of leases and sharing daemons; others hold a partition
  unsigned mps_clients = 0;  // of one server; 0 where MPS cannot be used
  bool mps_serves_several_users = false;
};

// MIG on: every MIG device. MIG off: the whole GPU. A partition that a process outside any lease
// has open is not lendable, and says who holds it.
std::vector<Partition> partitions_of(const gpu::GpuState& state, const InventoryFacts& facts);

// The processes that have the partition open.
std::vector<int> processes_on(const gpu::GpuState& state, const Partition& partition);

// What the GPU could be laid out for; empty unless MIG is on, since changing the mode is not for a
// lease to do.
std::vector<OfferedProfile> offered_by(const gpu::GpuState& state);

}  // namespace septet::lend
