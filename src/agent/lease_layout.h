// Room for a lease that fits nowhere: which idle partitions of a GPU have to go, and what the GPU
// looks like afterwards.
//
//   lent |1| |1| | | | | |     wanted 3g.20gb:   |1| |1| |  3g   |    the idle ones at 4..6 go
//
// Exact over all sets of instances (at most 2^12): the fewest lent ones first (they only tell what
// would have to end), then the fewest compute slices destroyed, then the largest future capacity.
// Pure; any thread.
#pragma once

#include <optional>
#include <vector>

#include "gpu/types.h"
#include "lend/ledger.h"
#include "partition/layout.h"

namespace septet::agent {

struct LeaseRoom {
  partition::Layout after;
  std::vector<lend::PartitionId> dropped;  // partitions that go
  bool only_idle = true;                   // false: some of them are lent
  unsigned slices_destroyed = 0;
};

// Room for `count` more partitions that serve the want on this GPU; nothing when even an empty GPU
// has not enough.
std::optional<LeaseRoom> find_room(const gpu::GpuState& state, const lend::SliceWant& want,
                                   unsigned count, const std::vector<lend::PartitionId>& idle);

}  // namespace septet::agent
