#include "lend/ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/units.h"

namespace septet::lend {

namespace {

Error no_such_lease(LeaseId id) {
  return make_error(ErrorKind::kNotFound,
                    fmt::format("there is no running lease {}: it ended or never was", id.value()),
                    "see septet lease list and septet lease history");
}

Error not_yours(const Lease& lease, std::string_view verb) {
  return make_error(ErrorKind::kPermission,
                    fmt::format("cannot {} lease {}: it belongs to {}", verb, lease.id.value(),
                                lease.request.owner.user),
                    "ask its holder or an administrator");
}

bool may_act_on(const Lease& lease, UserId user) {
  return user == lease.request.owner.uid || user.value() == 0;
}

}  // namespace

Ledger::Ledger(Policy policy) : policy_(std::move(policy)) {}

LeaseId Ledger::next_id() { return LeaseId(++last_id_); }

std::vector<Command> Ledger::take_commands() { return std::exchange(commands_, {}); }

void Ledger::restore(Instant now, std::vector<Lease> leases, LeaseId next_id) {
  CHECK(leases_.empty() && commands_.empty());
  now_ = now;
  use_decayed_ = now;
  last_id_ = next_id.value() - 1;
  for (Lease& lease : leases) {
    CHECK(lease.id.value() <= last_id_ && lease.state != LeaseState::kEnded);
    if (lease.state == LeaseState::kPreparing) {
      lease.deadline = now + policy_.prepare_within;
      commands_.emplace_back(PrepareLease{lease});
    } else if (lease.state == LeaseState::kReleasing) {
      lease.deadline = now + policy_.kill_grace;
      commands_.emplace_back(AskToEnd{lease.id, lease.reason, lease.deadline});
    } else if (lease.state == LeaseState::kWarned) {
      // The holder may not have heard the warning: the grace starts anew.
      lease.deadline = std::max(lease.deadline, now + policy_.idle_grace);
      commands_.emplace_back(WarnHolder{lease.id, lease.warned_for, lease.deadline});
    }
    const LeaseId id = lease.id;
    leases_.emplace(id, std::move(lease));
  }
  must_schedule_ = true;
}

void Ledger::step(Instant now, const Event& event) {
  CHECK(now >= now_);
  now_ = now;
  std::visit([this](const auto& each) { on(each); }, event);
  run_timers();
  if (must_schedule_) {
    run_schedule();
  }
  update_gate();
  check_invariants();
}

void Ledger::on(const PartitionsObserved& event) {
  partitions_ = event.partitions;
  offered_ = event.offered;
  ++supply_;
  must_schedule_ = true;
  const auto is_gone = [this](const Holding& holding) {
    return std::none_of(partitions_.begin(), partitions_.end(),
                        [&](const Partition& each) { return each.id == holding.partition; });
  };
  for (auto& [id, lease] : leases_) {
    if (lease.state != LeaseState::kReleasing && lease.holds() &&
        std::any_of(lease.holdings.begin(), lease.holdings.end(), is_gone)) {
      release(lease, EndReason::kPartitionLost);
    }
  }
}

bool Ledger::could_be_laid_out(const SliceWant& want) const {
  if (!policy_.may_change_layout || want.kind != SliceKind::kInstance || want.exact) {
    return false;
  }
  unsigned most = 0;
  for (const OfferedProfile& offered : offered_) {
    Partition imagined;
    imagined.profile = offered.name;
    imagined.memory_mib = offered.memory_mib;
    most += could_serve(imagined, want) ? offered.max_instances : 0;
  }
  return most >= want.count;
}

std::vector<Holding> Ledger::smallest_holdings(const SliceWant& want) const {
  std::vector<Holding> holdings;
  for (const Partition& partition : partitions_) {
    if (could_serve(partition, want)) {
      holdings.push_back(holding_for(partition, want));
    }
  }
  std::stable_sort(holdings.begin(), holdings.end(), [](const Holding& a, const Holding& b) {
    return a.share_permille < b.share_permille;
  });
  holdings.resize(std::min<std::size_t>(holdings.size(), want.count));
  return holdings;
}

Result<Ok> Ledger::check_request(const LeaseRequest& request) const {
  if (!could_be_laid_out(request.want)) {
    SEPTET_TRY(check_possible(partitions_, request.want));
  }
  const Quota& quota = quota_of(policy_, request.owner.user);
  if (request.time && *request.time <= Duration::zero()) {
    return make_error(ErrorKind::kUsage, "a lease lasts longer than zero");
  }
  if (quota.time && request.time.value_or(policy_.default_time) > *quota.time) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("{} may ask for at most {} at a time", request.owner.user,
                                  format_duration(*quota.time)),
                      "ask for less with --for, and renew while nobody waits");
  }
  SEPTET_TRY(alone_within_quota(policy_, request.owner, smallest_holdings(request.want)));
  std::size_t waiting = 0;
  std::size_t of_user = 0;
  for (const auto& [id, lease] : leases_) {
    if (lease.state == LeaseState::kQueued) {
      ++waiting;
      of_user += lease.request.owner.uid == request.owner.uid ? 1 : 0;
    }
  }
  if (waiting >= policy_.longest_queue || of_user >= policy_.most_per_user_queued) {
    return make_error(
        ErrorKind::kNoCapacity,
        fmt::format("the queue is full: {} requests wait, {} of them yours", waiting, of_user));
  }
  return Ok{};
}

void Ledger::on(const LeaseRequested& event) {
  CHECK(event.id.value() <= last_id_ && !leases_.contains(event.id));
  if (const Result<Ok> possible = check_request(event.request); !possible.ok()) {
    commands_.emplace_back(TellRefused{event.id, possible.error()});
    return;
  }
  Lease lease;
  lease.id = event.id;
  lease.request = event.request;
  lease.requested = now_;
  const bool may_wait = event.request.when_busy == WhenBusy::kQueue;
  leases_.emplace(event.id, std::move(lease));
  run_schedule();
  const auto found = leases_.find(event.id);
  if (found == leases_.end() || found->second.state != LeaseState::kQueued) {
    return;
  }
  if (!may_wait && !(layout_change_ && layout_change_->lease == event.id)) {
    refuse_unqueued(event.id);
    return;
  }
  changed(found->second);
  if (may_wait) {
    commands_.emplace_back(TellQueued{event.id});
  }
}

// A request that did not want to wait and cannot be served now.
void Ledger::refuse_unqueued(LeaseId id) {
  const Lease lease = leases_.at(id);
  const SliceWant& want = lease.request.want;
  Error error = make_error(ErrorKind::kNoCapacity, fmt::format("no {} is free", to_string(want)),
                           "wait for one with --queue; septet lease list shows who holds what");
  if (quota_waiting_.contains(id)) {
    Occupancy occupancy;
    for (const auto& [other, each] : leases_) {
      occupancy.add(each);
    }
    const Result<Ok> quota =
        occupancy.within_quota(policy_, lease.request.owner, smallest_holdings(want));
    if (!quota.ok()) {
      error = quota.error();
    }
  }
  leases_.erase(id);
  std::erase(queue_, id);
  quota_waiting_.erase(id);
  needs_.erase(id);
  layout_tried_.erase(id);
  commands_.emplace_back(TellRefused{id, std::move(error)});
}

void Ledger::on(const PreparationSucceeded& event) {
  const auto found = leases_.find(event.id);
  if (found == leases_.end() || found->second.state != LeaseState::kPreparing) {
    return;  // released meanwhile: asking it to end clears what was prepared
  }
  Lease& lease = found->second;
  lease.state = LeaseState::kActive;
  lease.expires = now_ + lease.request.time.value_or(policy_.default_time);
  lease.last_busy = now_;
  changed(lease);
  commands_.emplace_back(TellGranted{event.id});
}

void Ledger::on(const PreparationFailed& event) {
  const auto found = leases_.find(event.id);
  if (found == leases_.end() || found->second.state != LeaseState::kPreparing) {
    return;
  }
  fail_preparation(found->second, event.error);
}

void Ledger::fail_preparation(Lease& lease, const Error& error) {
  commands_.emplace_back(TellRefused{lease.id, error});
  release(lease, EndReason::kFailed);
}

Result<Ok> Ledger::check_renewal(const Lease& lease, const RenewalRequested& event) const {
  if (!may_act_on(lease, event.by)) {
    return not_yours(lease, "renew");
  }
  if (lease.state != LeaseState::kActive && lease.state != LeaseState::kWarned) {
    return make_error(
        ErrorKind::kPrecondition,
        fmt::format("cannot renew lease {}: it is {}", lease.id.value(), to_string(lease.state)));
  }
  if (event.generation && *event.generation != lease.generation) {
    return make_error(ErrorKind::kPrecondition,
                      fmt::format("lease {} has changed: generation {}, not {}", lease.id.value(),
                                  lease.generation, *event.generation),
                      "read the lease again");
  }
  const Quota& quota = quota_of(policy_, lease.request.owner.user);
  if (event.time <= Duration::zero() || (quota.time && event.time > *quota.time)) {
    return make_error(ErrorKind::kUsage,
                      quota.time ? fmt::format("a renewal lasts above zero and at most {}",
                                               format_duration(*quota.time))
                                 : std::string("a renewal lasts above zero"));
  }
  // Others starve: what would keep them waiting longer is not promised again.
  if (now_ + event.time > lease.expires && is_waited_for(lease, true)) {
    return make_error(ErrorKind::kNoCapacity,
                      fmt::format("cannot renew lease {}: others have waited longer than {} for it",
                                  lease.id.value(), format_duration(policy_.starving_after)),
                      "finish, or queue again");
  }
  return Ok{};
}

void Ledger::on(const RenewalRequested& event) {
  const auto found = leases_.find(event.id);
  if (found == leases_.end()) {
    commands_.emplace_back(TellRefused{event.id, no_such_lease(event.id)});
    return;
  }
  Lease& lease = found->second;
  if (const Result<Ok> allowed = check_renewal(lease, event); !allowed.ok()) {
    commands_.emplace_back(TellRefused{event.id, allowed.error()});
    return;
  }
  lease.expires = now_ + event.time;
  lease.last_busy = std::max(lease.last_busy, now_);  // whoever renews is there
  if (lease.state == LeaseState::kWarned && lease.warned_for != EndReason::kPreempted) {
    withdraw_warning(lease);
  } else {
    changed(lease);
  }
  commands_.emplace_back(TellRenewed{event.id});
}

void Ledger::on(const ReleaseRequested& event) {
  const auto found = leases_.find(event.id);
  if (found == leases_.end()) {
    commands_.emplace_back(TellRefused{event.id, no_such_lease(event.id)});
    return;
  }
  Lease& lease = found->second;
  if (!may_act_on(lease, event.by)) {
    commands_.emplace_back(TellRefused{event.id, not_yours(lease, "release")});
    return;
  }
  release(lease, event.by == lease.request.owner.uid ? EndReason::kReleased : EndReason::kRevoked);
}

void Ledger::on(const HolderLost& event) {
  if (const auto found = leases_.find(event.id); found != leases_.end()) {
    release(found->second, EndReason::kHolderGone);
  }
}

void Ledger::on(const ActivityObserved& event) {
  const auto found = leases_.find(event.id);
  if (found == leases_.end()) {
    return;
  }
  Lease& lease = found->second;
  const bool runs = lease.state == LeaseState::kActive || lease.state == LeaseState::kWarned;
  if (!runs || event.activity == Activity::kUnknown) {
    return;
  }
  if (event.activity == Activity::kBusy) {
    lease.last_busy = std::max(lease.last_busy, event.taken);
    if (lease.state == LeaseState::kWarned && lease.warned_for == EndReason::kIdle) {
      withdraw_warning(lease);
    }
    return;
  }
  // Who is paused cannot work, and what was seen long ago proves nothing now.
  const bool may_judge = !lease.is_paused && now_ - event.taken <= policy_.freshness;
  if (!may_judge || lease.request.idle_after == Duration::zero()) {
    return;
  }
  if (lease.state == LeaseState::kActive &&
      event.taken - lease.last_busy >= lease.request.idle_after) {
    warn(lease, EndReason::kIdle, now_ + policy_.idle_grace);
  } else if (lease.state == LeaseState::kWarned && lease.warned_for == EndReason::kIdle &&
             event.taken >= lease.deadline) {
    release(lease, EndReason::kIdle);
  }
}

void Ledger::on(const LeaseCleared& event) {
  const auto found = leases_.find(event.id);
  if (found != leases_.end() && found->second.state == LeaseState::kReleasing) {
    end(event.id, found->second.reason);
  }
}

void Ledger::on(const LayoutChangeEnded& event) {
  if (!layout_change_ || layout_change_->lease != event.id) {
    return;
  }
  layout_change_.reset();
  must_schedule_ = true;
  needs_.erase(event.id);
  const auto found = leases_.find(event.id);
  if (event.outcome == LayoutOutcome::kImpossibleNow) {
    needs_[event.id] = event.needs;
  } else if (event.outcome == LayoutOutcome::kFailed) {
    layout_retry_ = now_ + policy_.layout_retry_after;
  }
  if (found == leases_.end()) {
    return;
  }
  run_schedule();
  const auto after = leases_.find(event.id);
  if (after != leases_.end() && after->second.state == LeaseState::kQueued &&
      after->second.request.when_busy == WhenBusy::kRefuse) {
    Lease& lease = after->second;
    lease.state = LeaseState::kEnded;
    lease.reason = EndReason::kGaveUp;
    commands_.emplace_back(SaveLease{lease});
    refuse_unqueued(event.id);
  }
}

void Ledger::on(const TimePassed& /*event*/) {
  // A request may have begun to starve, which changes the order.
  must_schedule_ = true;
}

}  // namespace septet::lend
