// Occupancy: who holds what now, and whether one more fits beside them.
//
// Pure; owned by a scheduling pass or by the ledger's invariants. Built from the leases, then grown
// by add() as grants are decided.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lend/policy.h"
#include "lend/slice_want.h"
#include "lend/types.h"

namespace septet::lend {

// What one partition carries.
struct Load {
  unsigned tenants = 0;
  SliceKind kind = SliceKind::kInstance;  // of all tenants; meaningful when there are any
  unsigned percent = 0;
  std::int64_t memory_mib = 0;
  std::optional<UserId> mps_user;  // the one user an MPS server serves
};

// What one user or group holds.
struct Usage {
  unsigned leases = 0;
  unsigned share_permille = 0;
  std::int64_t memory_mib = 0;
};

class Occupancy {
 public:
  void add(const Lease& lease);
  void add(const Owner& owner, const std::vector<Holding>& holdings);

  const Load& load_of(const PartitionId& partition) const;
  bool is_idle(const PartitionId& partition) const { return load_of(partition).tenants == 0; }
  Usage user_usage(UserId user) const;

  // The holding, if the want fits beside what is there; the partition could_serve() the want.
  std::optional<Holding> fit(const Partition& partition, const SliceWant& want, UserId user) const;

  // kNoCapacity naming the quota that these holdings would break beside what is held; Ok otherwise.
  Result<Ok> within_quota(const Policy& policy, const Owner& owner,
                          const std::vector<Holding>& holdings) const;

  // The first broken promise, in words: a partition lent twice, more than all of it lent.
  std::optional<std::string> broken_invariant(const std::vector<Partition>& partitions) const;

 private:
  std::map<PartitionId, Load> loads_;
  std::map<UserId, Usage> users_;
  std::map<std::string, Usage> groups_;
};

// kNoCapacity when these holdings alone are over a quota, so that waiting would never help.
Result<Ok> alone_within_quota(const Policy& policy, const Owner& owner,
                              const std::vector<Holding>& holdings);

// The quota of a user: their own entry, or every_user.
const Quota& quota_of(const Policy& policy, const std::string& user);

}  // namespace septet::lend
