// The part of the ledger that time drives: expiry, warnings, reclaim, the priority gate.

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "lend/ledger.h"

namespace septet::lend {

void Ledger::run_timers() {
  std::vector<LeaseId> ids;  // ending one changes the map
  for (const auto& [id, lease] : leases_) {
    ids.push_back(id);
  }
  for (const LeaseId id : ids) {
    run_timer(leases_.at(id));
  }
  if (layout_change_ && now_ >= layout_change_->deadline) {
    on(LayoutChangeEnded{layout_change_->lease, LayoutOutcome::kFailed, {}});
  }
  if (layout_retry_ && now_ >= *layout_retry_) {
    layout_retry_.reset();
    layout_tried_.clear();
    must_schedule_ = true;
  }
}

void Ledger::run_timer(Lease& lease) {
  switch (lease.state) {
    case LeaseState::kQueued:
      if (lease.request.longest_wait && now_ >= lease.requested + *lease.request.longest_wait) {
        commands_.emplace_back(TellRefused{
            lease.id, make_error(ErrorKind::kNoCapacity, "nothing became free in the time given",
                                 "wait longer, or ask for less")});
        end(lease.id, EndReason::kGaveUp);
      }
      return;
    case LeaseState::kPreparing:
      if (now_ >= lease.deadline) {
        fail_preparation(
            lease, make_error(ErrorKind::kFailed,
                              fmt::format("lease {} was not set up in time", lease.id.value())));
      }
      return;
    case LeaseState::kEnded:
      return;
    case LeaseState::kActive:
    case LeaseState::kWarned:
      return run_expiry(lease);
    case LeaseState::kReleasing:
      if (now_ >= lease.deadline) {
        commands_.emplace_back(KillProcesses{lease.id});
        lease.deadline = now_ + policy_.kill_again_after;
      }
      return;
  }
}

// A quarter of a short lease's time is warning enough.
Instant Ledger::warning_instant(const Lease& lease) const {
  const Duration time = lease.request.time.value_or(policy_.default_time);
  return lease.expires - std::min(policy_.warn_before_expiry, time / 4);
}

void Ledger::run_expiry(Lease& lease) {
  if (lease.state == LeaseState::kWarned && lease.warned_for == EndReason::kPreempted &&
      now_ >= lease.deadline) {
    return release(lease, EndReason::kPreempted);
  }
  if (lease.request.time) {
    if (now_ >= lease.expires) {
      return release(lease, EndReason::kExpired);
    }
    if (lease.state == LeaseState::kActive && now_ >= warning_instant(lease)) {
      warn(lease, EndReason::kExpired, lease.expires);
    }
    return;
  }
  // Open-ended: it goes on while nobody waits for what it holds.
  if (now_ < lease.expires) {
    return;
  }
  const bool warned = lease.state == LeaseState::kWarned && lease.warned_for == EndReason::kExpired;
  if (!is_waited_for(lease, false)) {
    lease.expires = now_ + policy_.default_time;
    if (warned) {
      withdraw_warning(lease);
    } else {
      changed(lease);
    }
  } else if (!warned) {
    warn(lease, EndReason::kExpired, now_ + policy_.idle_grace);
  } else if (now_ >= lease.deadline) {
    release(lease, EndReason::kExpired);
  }
}

bool Ledger::yields_to_higher(const Lease& lease) const {
  for (const auto& [id, other] : leases_) {
    const bool works = (other.state == LeaseState::kActive || other.state == LeaseState::kWarned) &&
                       other.request.priority > lease.request.priority &&
                       other.last_busy + policy_.gate_hold > now_;
    if (!works) {
      continue;
    }
    for (const Holding& mine : lease.holdings) {
      for (const Holding& theirs : other.holdings) {
        if (mine.partition == theirs.partition) {
          return true;
        }
      }
    }
  }
  return false;
}

void Ledger::update_gate() {
  for (auto& [id, lease] : leases_) {
    const bool runs = lease.state == LeaseState::kActive || lease.state == LeaseState::kWarned;
    const bool is_gated =
        runs && !lease.holdings.empty() && lease.holdings[0].kind == SliceKind::kTimeSlice;
    const bool must_pause = is_gated && yields_to_higher(lease);
    if (must_pause == lease.is_paused) {
      continue;
    }
    lease.is_paused = must_pause;
    if (must_pause) {
      commands_.emplace_back(PauseProcesses{id});
    } else {
      // It could not work while it was paused, so its idle time starts now.
      lease.last_busy = std::max(lease.last_busy, now_ - policy_.gate_hold);
      commands_.emplace_back(ResumeProcesses{id});
    }
  }
}

void Ledger::warn(Lease& lease, EndReason reason, Instant deadline) {
  lease.state = LeaseState::kWarned;
  lease.warned_for = reason;
  lease.deadline = deadline;
  changed(lease);
  commands_.emplace_back(WarnHolder{lease.id, reason, deadline});
}

void Ledger::withdraw_warning(Lease& lease) {
  lease.state = LeaseState::kActive;
  lease.warned_for = EndReason::kNone;
  changed(lease);
  commands_.emplace_back(WithdrawWarning{lease.id});
}

void Ledger::release(Lease& lease, EndReason reason) {
  must_schedule_ = true;
  if (lease.state == LeaseState::kQueued) {
    end(lease.id, reason);
    return;
  }
  if (lease.state == LeaseState::kReleasing) {
    return;
  }
  lease.state = LeaseState::kReleasing;
  lease.reason = reason;
  lease.deadline = now_ + policy_.kill_grace;
  if (lease.is_paused) {
    // Asked to end it must be able to.
    lease.is_paused = false;
    commands_.emplace_back(ResumeProcesses{lease.id});
  }
  changed(lease);
  commands_.emplace_back(AskToEnd{lease.id, reason, lease.deadline});
}

void Ledger::end(LeaseId id, EndReason reason) {
  Lease& lease = leases_.at(id);
  lease.state = LeaseState::kEnded;
  lease.reason = reason;
  changed(lease);
  account_use(lease);
  commands_.emplace_back(TellEnded{id, reason});
  leases_.erase(id);
  std::erase(queue_, id);
  quota_waiting_.erase(id);
  needs_.erase(id);
  layout_tried_.erase(id);
  ++supply_;
  must_schedule_ = true;
}

void Ledger::changed(Lease& lease) {
  ++lease.generation;
  commands_.emplace_back(SaveLease{lease});
}

std::optional<Instant> Ledger::next_deadline() const {
  std::optional<Instant> next = layout_retry_;
  const auto consider = [&](Instant instant) {
    if (instant > now_ && (!next || instant < *next)) {
      next = instant;
    }
  };
  if (layout_change_) {
    consider(layout_change_->deadline);
  }
  for (const auto& [id, lease] : leases_) {
    switch (lease.state) {
      case LeaseState::kQueued:
        if (lease.request.longest_wait) {
          consider(lease.requested + *lease.request.longest_wait);
        }
        consider(lease.requested + policy_.starving_after);
        break;
      case LeaseState::kActive:
        if (lease.request.time) {
          consider(warning_instant(lease));
        }
        [[fallthrough]];
      case LeaseState::kWarned:
        consider(lease.expires);
        consider(lease.deadline);
        consider(lease.last_busy + policy_.gate_hold);
        break;
      case LeaseState::kPreparing:
      case LeaseState::kReleasing:
        consider(lease.deadline);
        break;
      case LeaseState::kEnded:
        break;
    }
  }
  return next;
}

void Ledger::check_invariants() const {
  Occupancy occupancy;
  for (const auto& [id, lease] : leases_) {
    CHECK(lease.state != LeaseState::kEnded);
    CHECK((lease.state == LeaseState::kQueued) == lease.holdings.empty());
    occupancy.add(lease);
  }
  CHECK(!occupancy.broken_invariant(partitions_));
}

}  // namespace septet::lend
