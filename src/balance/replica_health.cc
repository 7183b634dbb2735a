#include "balance/replica_health.h"

#include <algorithm>

namespace septet::balance {

namespace {

constexpr std::uint32_t kFailuresToEject = 3;
constexpr std::uint32_t kSuccessesToForgive = 10;
constexpr Duration kJoinBase = milliseconds(50);
constexpr Duration kLostBase = milliseconds(100);
constexpr Duration kLostLongest = seconds(5);
constexpr Duration kBadBase = seconds(1);
constexpr Duration kBadLongest = seconds(60);

}  // namespace

const char* to_string(ReplicaState state) {
  switch (state) {
    case ReplicaState::kJoining:
      return "joining";
    case ReplicaState::kUp:
      return "up";
    case ReplicaState::kEjected:
      return "ejected";
    case ReplicaState::kDraining:
      return "draining";
  }
  return "joining";
}

void ReplicaHealth::succeeded() {
  failures_in_a_row_ = 0;
  if (++successes_in_a_row_ >= kSuccessesToForgive) {
    backoff_ = Duration::zero();
  }
}

void ReplicaHealth::failed(Instant now, Failure failure) {
  if (failure == Failure::kStaleConnection) {
    return;
  }
  successes_in_a_row_ = 0;
  ++failures_in_a_row_;
  const bool lost = failure == Failure::kNotConnected || failure == Failure::kConnectionLost;
  if (lost) {
    if (up()) {
      hope_until_ = now + kHope;
    }
    eject(now, kLostBase, kLostLongest);
  } else if (failures_in_a_row_ >= kFailuresToEject) {
    eject(now, kBadBase, kBadLongest);
  }
}

void ReplicaHealth::drain() {
  state_ = ReplicaState::kDraining;
  hope_until_ = Instant{};
}

void ReplicaHealth::too_slow(Instant now) {
  successes_in_a_row_ = 0;
  eject(now, kBadBase, kBadLongest);
}

void ReplicaHealth::eject(Instant now, Duration base, Duration longest) {
  if (state_ != ReplicaState::kUp) {
    return;
  }
  state_ = ReplicaState::kEjected;
  ++ejections_;
  longest_ = longest;
  backoff_ = backoff_ == Duration::zero() ? base : std::min(backoff_ * 2, longest);
  probe_at_ = now + backoff_;
}

bool ReplicaHealth::awaits_probe() const {
  return !probing_ && (state_ == ReplicaState::kJoining || state_ == ReplicaState::kEjected);
}

void ReplicaHealth::probe_succeeded() {
  probing_ = false;
  if (state_ == ReplicaState::kDraining) {
    return;
  }
  if (state_ == ReplicaState::kJoining) {
    backoff_ = Duration::zero();
  }
  hope_until_ = Instant{};
  state_ = ReplicaState::kUp;
  failures_in_a_row_ = 0;
  successes_in_a_row_ = 0;
}

void ReplicaHealth::probe_failed(Instant now) {
  probing_ = false;
  backoff_ = backoff_ == Duration::zero() ? kJoinBase : std::min(backoff_ * 2, longest_);
  probe_at_ = now + backoff_;
}

}  // namespace septet::balance
