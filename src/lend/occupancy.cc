#include "lend/occupancy.h"

#include <fmt/format.h>

namespace septet::lend {

namespace {

Usage plus(Usage usage, const std::vector<Holding>& holdings) {
  ++usage.leases;
  for (const Holding& holding : holdings) {
    usage.share_permille += holding.share_permille;
    usage.memory_mib += holding.memory_mib;
  }
  return usage;
}

Result<Ok> check_quota(const Quota& quota, const std::string& whose, Usage before, Usage after) {
  const auto refuse = [&](const std::string& what) {
    return make_error(ErrorKind::kNoCapacity, fmt::format("over the quota of {}: {}", whose, what),
                      "release a lease, wait in the queue with --queue, or ask for less");
  };
  if (quota.leases && after.leases > *quota.leases) {
    return refuse(fmt::format("{} leases allowed, {} held", *quota.leases, before.leases));
  }
  if (quota.share_permille && after.share_permille > *quota.share_permille) {
    return refuse(fmt::format("{:.1f} % of a GPU allowed, {:.1f} % held and {:.1f} % asked for",
                              *quota.share_permille / 10.0, before.share_permille / 10.0,
                              (after.share_permille - before.share_permille) / 10.0));
  }
  if (quota.memory_mib && after.memory_mib > *quota.memory_mib) {
    return refuse(fmt::format("{} MiB allowed, {} MiB held and {} MiB asked for", *quota.memory_mib,
                              before.memory_mib, after.memory_mib - before.memory_mib));
  }
  return Ok{};
}

}  // namespace

const Quota& quota_of(const Policy& policy, const std::string& user) {
  const auto own = policy.users.find(user);
  return own == policy.users.end() ? policy.every_user : own->second;
}

void Occupancy::add(const Lease& lease) {
  if (lease.holds()) {
    add(lease.request.owner, lease.holdings);
  }
}

void Occupancy::add(const Owner& owner, const std::vector<Holding>& holdings) {
  for (const Holding& holding : holdings) {
    Load& load = loads_[holding.partition];
    ++load.tenants;
    load.kind = holding.kind;
    load.percent += holding.percent;
    load.memory_mib += holding.memory_mib;
    if (holding.kind == SliceKind::kMps) {
      load.mps_user = owner.uid;
    }
  }
  users_[owner.uid] = plus(users_[owner.uid], holdings);
  for (const std::string& group : owner.groups) {
    groups_[group] = plus(groups_[group], holdings);
  }
}

const Load& Occupancy::load_of(const PartitionId& partition) const {
  static const Load kNothing;
  const auto found = loads_.find(partition);
  return found == loads_.end() ? kNothing : found->second;
}

Usage Occupancy::user_usage(UserId user) const {
  const auto found = users_.find(user);
  return found == users_.end() ? Usage{} : found->second;
}

std::optional<Holding> Occupancy::fit(const Partition& partition, const SliceWant& want,
                                      UserId user) const {
  const Load& load = load_of(partition.id);
  const Holding holding = holding_for(partition, want);
  if (load.tenants == 0) {
    return holding;
  }
  if (!is_shared(want.kind) || load.kind != want.kind ||
      load.memory_mib + holding.memory_mib > partition.memory_mib) {
    return std::nullopt;
  }
  if (want.kind == SliceKind::kMps) {
    const bool other_user = load.mps_user != user && !partition.mps_serves_several_users;
    if (other_user || load.tenants >= partition.mps_clients ||
        load.percent + holding.percent > 100) {
      return std::nullopt;
    }
  }
  return holding;
}

Result<Ok> Occupancy::within_quota(const Policy& policy, const Owner& owner,
                                   const std::vector<Holding>& holdings) const {
  const Usage held = user_usage(owner.uid);
  SEPTET_TRY(
      check_quota(quota_of(policy, owner.user), "user " + owner.user, held, plus(held, holdings)));
  for (const std::string& group : owner.groups) {
    const auto quota = policy.groups.find(group);
    if (quota == policy.groups.end()) {
      continue;
    }
    const auto found = groups_.find(group);
    const Usage together = found == groups_.end() ? Usage{} : found->second;
    SEPTET_TRY(check_quota(quota->second, "group " + group, together, plus(together, holdings)));
  }
  return Ok{};
}

std::optional<std::string> Occupancy::broken_invariant(
    const std::vector<Partition>& partitions) const {
  for (const Partition& partition : partitions) {
    const Load& load = load_of(partition.id);
    if (load.tenants > 1 && !is_shared(load.kind)) {
      return fmt::format("{} is lent {} times", partition.id.value(), load.tenants);
    }
    if (load.percent > 100) {
      return fmt::format("{} % of {} are lent", load.percent, partition.id.value());
    }
    if (load.memory_mib > partition.memory_mib) {
      return fmt::format("{} MiB of {}'s {} MiB are lent", load.memory_mib, partition.id.value(),
                         partition.memory_mib);
    }
  }
  return std::nullopt;
}

Result<Ok> alone_within_quota(const Policy& policy, const Owner& owner,
                              const std::vector<Holding>& holdings) {
  return Occupancy().within_quota(policy, owner, holdings);
}

}  // namespace septet::lend
