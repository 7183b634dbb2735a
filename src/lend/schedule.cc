#include "lend/schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace septet::lend {

namespace {

class Pass {
 public:
  explicit Pass(const ScheduleInput& input)
      : input_(input), withheld_(input.withheld.begin(), input.withheld.end()) {
    for (const auto& [id, lease] : input.leases) {
      occupancy_.add(lease);
      if (lease.state == LeaseState::kQueued) {
        waiting_.push_back(&lease);
      }
    }
  }

  Schedule run() {
    sort_waiting(0);
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      const Lease& lease = *waiting_[i];
      if (try_grant(lease)) {
        // The owner holds more now; who is behind may come first. Those before i did not fit, and
        // a grant makes no room, so they need no second look.
        sort_waiting(i + 1);
      } else {
        result_.order.push_back(lease.id);
      }
    }
    return std::move(result_);
  }

 private:
  void sort_waiting(std::size_t from) {
    const auto key = [this](const Lease* lease) {
      const bool starves = is_starving(input_.policy, input_.now, *lease);
      const UserId user = lease->request.owner.uid;
      const auto recent = input_.recent_use.find(user);
      const int rank = starves ? 0 : 3 - static_cast<int>(lease->request.priority);
      // Among the starving only age counts.
      const unsigned held = starves ? 0 : occupancy_.user_usage(user).share_permille;
      const double used = starves || recent == input_.recent_use.end() ? 0 : recent->second;
      return std::tuple(rank, held, used, lease->requested, lease->id);
    };
    using Key = decltype(key(nullptr));
    std::vector<std::pair<Key, const Lease*>> keyed;
    keyed.reserve(waiting_.size() - from);
    for (std::size_t i = from; i < waiting_.size(); ++i) {
      keyed.emplace_back(key(waiting_[i]), waiting_[i]);
    }
    std::sort(keyed.begin(), keyed.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < keyed.size(); ++i) {
      waiting_[from + i] = keyed[i].second;
    }
  }

  bool try_grant(const Lease& lease) {
    std::vector<Holding> holdings = choose(lease);
    if (holdings.empty()) {
      if (waits_for_quota(lease)) {
        result_.quota_waiting.push_back(lease.id);
      } else if (!result_.head) {
        reserve(lease);
      }
      return false;
    }
    if (!occupancy_.within_quota(input_.policy, lease.request.owner, holdings).ok()) {
      result_.quota_waiting.push_back(lease.id);
      return false;
    }
    occupancy_.add(lease.request.owner, holdings);
    result_.grants.push_back({lease.id, std::move(holdings)});
    return true;
  }

  // Whether the quota would stop the request even if partitions were free: judged on the smallest
  // partitions that could serve it.
  bool waits_for_quota(const Lease& lease) {
    std::vector<Holding> holdings;
    for (const Partition* partition : candidates(lease.request.want)) {
      if (holdings.size() < lease.request.want.count) {
        holdings.push_back(holding_for(*partition, lease.request.want));
      }
    }
    return !holdings.empty() &&
           !occupancy_.within_quota(input_.policy, lease.request.owner, holdings).ok();
  }

  // Many wait for the same: where the order depends on the want alone it is made once.
  const std::vector<const Partition*>& candidates(const SliceWant& want) {
    if (is_shared(want.kind)) {
      return shared_candidates_ = sorted_candidates(want);
    }
    const auto [found, is_new] = candidates_.try_emplace(to_string(want));
    if (is_new) {
      found->second = sorted_candidates(want);
    }
    return found->second;
  }

  // The smallest first, so that a small want does not take a large partition; a shared want fills
  // the partition that is shared already.
  std::vector<const Partition*> sorted_candidates(const SliceWant& want) const {
    std::vector<const Partition*> able;
    for (const Partition& partition : input_.partitions) {
      if (could_serve(partition, want)) {
        able.push_back(&partition);
      }
    }
    std::stable_sort(able.begin(), able.end(), [&](const Partition* a, const Partition* b) {
      const auto key = [&](const Partition* p) {
        const bool starts_sharing = is_shared(want.kind) && occupancy_.is_idle(p->id);
        return std::tuple(starts_sharing, p->is_whole_gpu(), p->memory_mib, p->share_permille);
      };
      return key(a) < key(b);
    });
    return able;
  }

  // All the partitions for the request, or nothing.
  std::vector<Holding> choose(const Lease& lease) {
    const SliceWant& want = lease.request.want;
    std::vector<Holding> holdings;
    for (const Partition* partition : candidates(want)) {
      if (withheld_.contains(partition->id) || delays_head(lease, partition->id)) {
        continue;
      }
      if (auto holding = occupancy_.fit(*partition, want, lease.request.owner.uid)) {
        holdings.push_back(std::move(*holding));
        if (holdings.size() == want.count) {
          return holdings;
        }
      }
    }
    return {};
  }

  bool delays_head(const Lease& lease, const PartitionId& partition) const {
    if (!result_.head) {
      return false;
    }
    const auto& reserved = result_.head->reserved;
    if (std::find(reserved.begin(), reserved.end(), partition) == reserved.end()) {
      return false;
    }
    return latest_end(lease, input_.now) > result_.head->starts_by;
  }

  // When a lease will have given its partition back at the latest.
  Instant latest_end(const Lease& lease, Instant starts) const {
    const Policy& policy = input_.policy;
    if (lease.state == LeaseState::kReleasing) {
      return lease.deadline + policy.kill_again_after;
    }
    const Instant expires =
        lease.state == LeaseState::kQueued || lease.state == LeaseState::kPreparing
            ? starts + lease.request.time.value_or(policy.default_time)
            : lease.expires;
    // An open-ended lease is warned at its expiry, not before.
    const Duration notice = lease.request.time ? Duration::zero() : policy.idle_grace;
    return expires + notice + policy.kill_grace + policy.kill_again_after;
  }

  Instant free_at(const PartitionId& partition) const {
    Instant last = input_.now;
    for (const auto& [id, lease] : input_.leases) {
      for (const Holding& holding : lease.holdings) {
        if (holding.partition == partition && lease.holds()) {
          last = std::max(last, latest_end(lease, lease.granted));
        }
      }
    }
    for (const Grant& grant : result_.grants) {
      for (const Holding& holding : grant.holdings) {
        if (holding.partition == partition) {
          last = std::max(last, latest_end(input_.leases.at(grant.lease), input_.now));
        }
      }
    }
    return last;
  }

  void reserve(const Lease& lease) {
    Head head;
    head.lease = lease.id;
    std::vector<std::pair<Instant, const PartitionId*>> free;
    const std::vector<const Partition*>& able = candidates(lease.request.want);
    head.fits_layout = able.size() >= lease.request.want.count;
    std::size_t wanted = lease.request.want.count;
    if (head.fits_layout) {
      for (const Partition* partition : able) {
        free.emplace_back(free_at(partition->id), &partition->id);
      }
    } else if (const auto needs = input_.needs.find(lease.id); needs != input_.needs.end()) {
      // Served only after a change of layout, for which all of these have to be idle.
      for (const PartitionId& partition : needs->second) {
        free.emplace_back(free_at(partition), &partition);
      }
      wanted = free.size();
    }
    std::stable_sort(free.begin(), free.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < wanted && i < free.size(); ++i) {
      head.reserved.push_back(*free[i].second);
      head.starts_by = free[i].first;
    }
    result_.head = std::move(head);
  }

  const ScheduleInput& input_;
  std::set<PartitionId> withheld_;
  Occupancy occupancy_;
  std::vector<const Lease*> waiting_;
  std::map<std::string, std::vector<const Partition*>> candidates_;  // by want, unshared kinds
  std::vector<const Partition*> shared_candidates_;                  // of the want in hand
  Schedule result_;
};

}  // namespace

bool is_starving(const Policy& policy, Instant now, const Lease& lease) {
  return now - lease.requested >= policy.starving_after;
}

Schedule schedule(const ScheduleInput& input) { return Pass(input).run(); }

}  // namespace septet::lend
