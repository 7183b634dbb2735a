// One scheduling pass: which of the waiting requests get what now.
//
// The order: requests that starve (waited longer than the policy allows) by age; then by priority;
// within a priority the user who holds least, then who used least lately, then by age. The first
// that does not fit is the head: for it partitions are reserved, and later requests may be served
// before it (back-fill) only where that cannot delay it: on partitions that are not reserved, or if
// they end before the head could start. A request that waits for its own user's quota is passed
// over and reserves nothing.
//
// Pure function; any thread.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "lend/occupancy.h"

namespace septet::lend {

struct ScheduleInput {
  Instant now{};
  const Policy& policy;
  const std::vector<Partition>& partitions;
  const std::map<LeaseId, Lease>& leases;
  const std::map<UserId, double>& recent_use;  // decayed; more = later
  const std::vector<PartitionId>& withheld;    // under a change of layout: lend nothing there
  const std::map<LeaseId, std::vector<PartitionId>>& needs;  // learned: must all be idle to re-lay
};

struct Grant {
  LeaseId lease;
  std::vector<Holding> holdings;
};

// The first request that does not fit.
struct Head {
  LeaseId lease;
  std::vector<PartitionId> reserved;
  Instant starts_by = Instant::max();  // when it could start if every lease ran its full time
  bool fits_layout = false;            // enough partitions could serve it, were they free
};

struct Schedule {
  std::vector<Grant> grants;
  std::optional<Head> head;
  std::vector<LeaseId> order;          // those that still wait, in the order of the rule
  std::vector<LeaseId> quota_waiting;  // of these, those that wait for a quota
};

Schedule schedule(const ScheduleInput& input);

// Whether the request has waited so long that nothing younger may be preferred.
bool is_starving(const Policy& policy, Instant now, const Lease& lease);

}  // namespace septet::lend
