// The part of the ledger that room drives: the scheduling pass, changes of layout, pre-emption.

#include <algorithm>
#include <cmath>

#include "lend/ledger.h"

namespace septet::lend {

namespace {

// How fast past use is forgotten in the order of the queue.
constexpr double kUseHalfLifeSeconds = 6 * 3600.0;

}  // namespace

void Ledger::run_schedule() {
  must_schedule_ = false;
  // Past use fades, so that yesterday's heavy user is not punished today.
  const double halves = to_seconds(now_ - use_decayed_) / kUseHalfLifeSeconds;
  for (auto& [user, use] : recent_use_) {
    use *= std::exp2(-halves);
  }
  use_decayed_ = now_;
  static const std::vector<PartitionId> kNone;
  const std::vector<PartitionId>& withheld = layout_change_ ? layout_change_->withheld : kNone;
  Schedule result = schedule({now_, policy_, partitions_, leases_, recent_use_, withheld, needs_});
  for (const Grant& each : result.grants) {
    grant(each);
  }
  queue_ = std::move(result.order);
  quota_waiting_ = {result.quota_waiting.begin(), result.quota_waiting.end()};
  update_preemption(result.head);
  if (result.head) {
    consider_layout(*result.head);
  }
}

void Ledger::grant(const Grant& grant) {
  Lease& lease = leases_.at(grant.lease);
  lease.holdings = grant.holdings;
  lease.state = LeaseState::kPreparing;
  lease.granted = now_;
  lease.deadline = now_ + policy_.prepare_within;
  needs_.erase(lease.id);
  layout_tried_.erase(lease.id);
  changed(lease);
  commands_.emplace_back(PrepareLease{lease});
}

void Ledger::consider_layout(const Head& head) {
  const Lease& lease = leases_.at(head.lease);
  const auto tried = layout_tried_.find(head.lease);
  const bool tried_already = tried != layout_tried_.end() && tried->second == supply_;
  if (layout_change_ || layout_retry_ || tried_already || !could_be_laid_out(lease.request.want)) {
    return;
  }
  Occupancy occupancy;
  for (const auto& [id, each] : leases_) {
    occupancy.add(each);
  }
  ChangeLayout change{head.lease, lease.request.want, {}};
  for (const Partition& partition : partitions_) {
    if (partition.is_lendable && occupancy.is_idle(partition.id)) {
      change.idle.push_back(partition.id);
    }
  }
  layout_tried_[head.lease] = supply_;
  layout_change_ = LayoutChange{head.lease, change.idle, now_ + policy_.layout_within};
  commands_.emplace_back(std::move(change));
}

std::set<LeaseId> Ledger::preemption_victims(const Head& head) const {
  const Lease& waiting = leases_.at(head.lease);
  if (waiting.request.when_busy == WhenBusy::kRefuse || !head.fits_layout) {
    return {};  // it will not be there when they are gone
  }
  struct Candidate {
    bool is_warned;
    Instant granted;
    std::vector<LeaseId> holders;
  };
  std::vector<Candidate> candidates;
  std::size_t coming = 0;  // partitions that become free without doing anything
  for (const Partition& partition : partitions_) {
    if (!could_serve(partition, waiting.request.want)) {
      continue;
    }
    Candidate candidate{false, Instant{}, {}};
    bool all_yield = true;
    bool all_leave = true;
    for (const auto& [id, lease] : leases_) {
      const bool is_here =
          std::any_of(lease.holdings.begin(), lease.holdings.end(),
                      [&](const Holding& holding) { return holding.partition == partition.id; });
      if (!is_here) {
        continue;
      }
      const bool leaves = lease.state == LeaseState::kReleasing;
      all_leave = all_leave && leaves;
      all_yield = all_yield && (leaves || (lease.request.is_preemptible &&
                                           lease.request.priority < waiting.request.priority &&
                                           lease.state != LeaseState::kPreparing));
      if (!leaves) {
        candidate.holders.push_back(id);
        candidate.is_warned |= lease.warned_for == EndReason::kPreempted;
        candidate.granted = std::max(candidate.granted, lease.granted);
      }
    }
    if (all_leave) {
      ++coming;
    } else if (all_yield) {
      candidates.push_back(std::move(candidate));
    }
  }
  // Those warned already, then those who got it last: they lose least.
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return a.is_warned != b.is_warned ? a.is_warned : a.granted > b.granted;
  });
  std::set<LeaseId> victims;
  if (coming + candidates.size() < waiting.request.want.count) {
    return victims;  // would not help
  }
  for (std::size_t i = 0; i + coming < waiting.request.want.count && i < candidates.size(); ++i) {
    victims.insert(candidates[i].holders.begin(), candidates[i].holders.end());
  }
  return victims;
}

void Ledger::update_preemption(const std::optional<Head>& head) {
  const std::set<LeaseId> victims = head ? preemption_victims(*head) : std::set<LeaseId>{};
  for (auto& [id, lease] : leases_) {
    const bool warned =
        lease.state == LeaseState::kWarned && lease.warned_for == EndReason::kPreempted;
    if (victims.contains(id)) {
      if (!warned && (lease.state == LeaseState::kActive || lease.state == LeaseState::kWarned)) {
        warn(lease, EndReason::kPreempted, now_ + policy_.idle_grace);
      }
    } else if (warned) {
      withdraw_warning(lease);
    }
  }
}

void Ledger::account_use(const Lease& lease) {
  if (lease.holdings.empty()) {
    return;
  }
  double share = 0;
  for (const Holding& holding : lease.holdings) {
    share += holding.share_permille / 1000.0;
  }
  recent_use_[lease.request.owner.uid] += share * to_seconds(now_ - lease.granted);
}

bool Ledger::is_waited_for(const Lease& lease, bool by_starving_only) const {
  for (const LeaseId id : queue_) {
    const Lease& waiting = leases_.at(id);
    if (quota_waiting_.contains(id) || (by_starving_only && !is_starving(policy_, now_, waiting))) {
      continue;
    }
    const auto needs = needs_.find(id);
    for (const Holding& holding : lease.holdings) {
      const bool blocks_layout =
          needs != needs_.end() && std::find(needs->second.begin(), needs->second.end(),
                                             holding.partition) != needs->second.end();
      const bool could_take =
          std::any_of(partitions_.begin(), partitions_.end(), [&](const Partition& partition) {
            return partition.id == holding.partition &&
                   could_serve(partition, waiting.request.want);
          });
      if (blocks_layout || could_take) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace septet::lend
