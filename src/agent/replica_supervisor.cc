#include "agent/replica_supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace septet::agent {

const char* to_string(ReplicaState state) {
  switch (state) {
    case ReplicaState::kStopped:
      return "stopped";
    case ReplicaState::kStarting:
      return "starting";
    case ReplicaState::kReady:
      return "ready";
    case ReplicaState::kBackingOff:
      return "backing off";
    case ReplicaState::kDraining:
      return "draining";
    case ReplicaState::kStopping:
      return "stopping";
    case ReplicaState::kFailed:
      return "failed";
  }
  return "unknown";
}

void ReplicaSupervisor::step(Instant now, const SupervisorEvent& event) {
  std::visit([&](const auto& happened) { on(now, happened); }, event);
  CHECK(state_ != ReplicaState::kReady || was_ever_ready_);
  CHECK(wanted_ || state_ != ReplicaState::kBackingOff);
}

std::vector<SupervisorCommand> ReplicaSupervisor::take_commands() {
  return std::exchange(commands_, {});
}

std::optional<Instant> ReplicaSupervisor::next_deadline() const {
  if (!state_deadline_ || !probe_due_) {
    return state_deadline_ ? state_deadline_ : probe_due_;
  }
  return std::min(*state_deadline_, *probe_due_);
}

void ReplicaSupervisor::on(Instant now, const StartRequested&) {
  wanted_ = true;
  if (state_ == ReplicaState::kStopped || state_ == ReplicaState::kFailed) {
    failures_ = 0;
    start(now);
  }
  // In every other state it runs, or will be started once its process has ended.
}

void ReplicaSupervisor::on(Instant now, const StopRequested& event) {
  wanted_ = false;
  switch (state_) {
    case ReplicaState::kReady:
      commands_.emplace_back(AnnounceGone{});
      if (event.drain > Duration::zero()) {
        enter(ReplicaState::kDraining, now + event.drain);
      } else {
        ask_to_end(now);
      }
      return;
    case ReplicaState::kStarting:
      ask_to_end(now);
      return;
    case ReplicaState::kBackingOff:
    case ReplicaState::kFailed:
      enter(ReplicaState::kStopped, std::nullopt);
      return;
    case ReplicaState::kStopped:
    case ReplicaState::kDraining:
    case ReplicaState::kStopping:
      return;
  }
}

void ReplicaSupervisor::on(Instant now, const DrainFinished&) {
  if (state_ == ReplicaState::kDraining) {
    ask_to_end(now);
  }
}

void ReplicaSupervisor::on(Instant /*now*/, const ProcessStarted& event) {
  if (event.attempt != attempt_) {
    return;
  }
  if (state_ == ReplicaState::kStarting) {
    probe();
  } else if (state_ == ReplicaState::kStopping) {
    commands_.emplace_back(AskToEnd{attempt_});  // the first one came before there was a process
  }
}

void ReplicaSupervisor::on(Instant now, const ProcessStartFailed& event) {
  if (event.attempt != attempt_ || !has_process()) {
    return;
  }
  if (state_ == ReplicaState::kStarting) {
    failed(now, event.reason);
  } else {
    ended(now);
  }
}

void ReplicaSupervisor::on(Instant now, const ProcessEnded& event) {
  if (event.attempt != attempt_ || !has_process()) {
    return;
  }
  switch (state_) {
    case ReplicaState::kReady:
      commands_.emplace_back(AnnounceGone{});
      ++restarts_;
      failed(now, "its process ended with " + event.how);
      return;
    case ReplicaState::kStarting:
      failed(now, "its process ended with " + event.how + " before it was ready");
      return;
    case ReplicaState::kDraining:
    case ReplicaState::kStopping:
      ended(now);
      return;
    case ReplicaState::kStopped:
    case ReplicaState::kBackingOff:
    case ReplicaState::kFailed:
      return;
  }
}

void ReplicaSupervisor::on(Instant now, const ProbeAnswered& event) {
  if (event.probe != probe_) {
    return;
  }
  if (state_ == ReplicaState::kStarting) {
    if (!event.healthy) {
      probe_due_ = now + options_.starting_probe_interval;
      return;
    }
    was_ever_ready_ = true;
    failed_probes_ = 0;
    ready_since_ = now;
    commands_.emplace_back(AnnounceReady{});
    enter(ReplicaState::kReady, std::nullopt);
    probe_due_ = now + options_.ready_probe_interval;
  } else if (state_ == ReplicaState::kReady) {
    failed_probes_ = event.healthy ? 0 : failed_probes_ + 1;
    probe_due_ = now + options_.ready_probe_interval;
    if (failed_probes_ > options_.failed_probes_allowed) {
      commands_.emplace_back(AnnounceGone{});
      ++restarts_;
      replace(now, fmt::format("it failed {} health checks in a row", failed_probes_));
    }
  }
}

void ReplicaSupervisor::on(Instant now, const TimePassed&) {
  if (probe_due_ && now >= *probe_due_) {
    probe();
  }
  if (!state_deadline_ || now < *state_deadline_) {
    return;
  }
  switch (state_) {
    case ReplicaState::kStarting:
      replace(now,
              fmt::format("it was not ready within {:g} s", to_seconds(options_.start_timeout)));
      return;
    case ReplicaState::kBackingOff:
      start(now);
      return;
    case ReplicaState::kDraining:
      ask_to_end(now);
      return;
    case ReplicaState::kStopping:
      commands_.emplace_back(Kill{attempt_});
      state_deadline_ = now + options_.stop_grace;
      return;
    case ReplicaState::kStopped:
    case ReplicaState::kReady:
    case ReplicaState::kFailed:
      return;
  }
}

void ReplicaSupervisor::start(Instant now) {
  ++attempt_;
  commands_.emplace_back(StartProcess{attempt_});
  enter(ReplicaState::kStarting, now + options_.start_timeout);
}

void ReplicaSupervisor::probe() {
  probe_due_.reset();  // until the answer, which comes in any case
  commands_.emplace_back(Probe{++probe_, options_.probe_timeout});
}

void ReplicaSupervisor::ask_to_end(Instant now) {
  commands_.emplace_back(AskToEnd{attempt_});
  enter(ReplicaState::kStopping, now + options_.stop_grace);
}

// Ends a process that is of no use; it hangs, so it is not asked.
void ReplicaSupervisor::replace(Instant now, const std::string& why) {
  replacing_ = why;
  commands_.emplace_back(Kill{attempt_});
  enter(ReplicaState::kStopping, now + options_.stop_grace);
}

// The process of a draining or stopping replica is gone.
void ReplicaSupervisor::ended(Instant now) {
  const std::optional<std::string> why = std::exchange(replacing_, std::nullopt);
  if (!wanted_) {
    enter(ReplicaState::kStopped, std::nullopt);
  } else if (why) {
    failed(now, *why);
  } else {
    start(now);
  }
}

void ReplicaSupervisor::failed(Instant now, const std::string& why) {
  last_failure_ = why;
  if (state_ == ReplicaState::kReady && now - ready_since_ >= options_.steady_after) {
    failures_ = 0;
  }
  ++failures_;
  if (options_.starts_allowed > 0 && !was_ever_ready_ && failures_ >= options_.starts_allowed) {
    enter(ReplicaState::kFailed, std::nullopt);
  } else {
    enter(ReplicaState::kBackingOff, now + back_off());
  }
}

Duration ReplicaSupervisor::back_off() const {
  Duration wait = options_.first_back_off;
  for (unsigned i = 1; i < failures_ && wait < options_.longest_back_off; ++i) {
    wait *= 2;
  }
  return std::min(wait, options_.longest_back_off);
}

void ReplicaSupervisor::enter(ReplicaState state, std::optional<Instant> deadline) {
  state_ = state;
  state_deadline_ = deadline;
  probe_due_.reset();
  ++probe_;  // an answer to a question of the state before is of no interest
}

bool ReplicaSupervisor::has_process() const {
  return state_ == ReplicaState::kStarting || state_ == ReplicaState::kReady ||
         state_ == ReplicaState::kDraining || state_ == ReplicaState::kStopping;
}

}  // namespace septet::agent
