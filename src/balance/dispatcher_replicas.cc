// What the Dispatcher knows of its replicas: who is up, what is pinned there, probes, the view of
// one.

#include <algorithm>
#include <utility>

#include "balance/dispatcher.h"
#include "base/check.h"

namespace septet::balance {

bool Dispatcher::hopeless(Instant now) const {
  const auto worth_waiting = [now](const Replica& replica) {
    return replica.present && replica.health.hopeful(now);
  };
  return up_ == 0 && std::none_of(replicas_.begin(), replicas_.end(), worth_waiting);
}

void Dispatcher::count_up() {
  up_ = down_ = 0;
  for (const Replica& replica : replicas_) {
    const ReplicaState state = replica.health.state();
    up_ += replica.present && state == ReplicaState::kUp ? 1 : 0;
    down_ += replica.present && (state == ReplicaState::kJoining || state == ReplicaState::kEjected)
                 ? 1
                 : 0;
  }
}

std::optional<ReplicaIndex> Dispatcher::pin(ModelIndex index) {
  const Model& model = models_[index.value()];
  std::optional<std::uint32_t> best;
  for (std::uint32_t replica = 0; replica < replicas_.size(); ++replica) {
    const auto load = [this](std::uint32_t at) {
      return std::pair(replicas_[at].pinned, replicas_[at].outstanding);
    };
    if (usable(model, replica) && (!best || load(replica) < load(*best))) {
      best = replica;
    }
  }
  if (!best) {
    return std::nullopt;
  }
  ++replicas_[*best].pinned;
  return ReplicaIndex(*best);
}

void Dispatcher::unpin(ReplicaIndex replica) {
  CHECK(replicas_[replica.value()].pinned > 0);
  --replicas_[replica.value()].pinned;
}

void Dispatcher::pinned_failed(Instant now, ReplicaIndex replica, Failure failure) {
  ++replicas_[replica.value()].failed;
  replicas_[replica.value()].health.failed(now, failure);
  count_up();
}

std::optional<ReplicaIndex> Dispatcher::next_probe(Instant now) {
  for (std::uint32_t index = 0; down_ > 0 && index < replicas_.size(); ++index) {
    Replica& replica = replicas_[index];
    if (replica.present && replica.health.awaits_probe() && replica.health.probe_at() <= now) {
      replica.health.probe_started();
      return ReplicaIndex(index);
    }
  }
  return std::nullopt;
}

void Dispatcher::probe_succeeded(ReplicaIndex replica) {
  replicas_[replica.value()].health.probe_succeeded();
  count_up();
}

void Dispatcher::probe_failed(Instant now, ReplicaIndex replica) {
  replicas_[replica.value()].health.probe_failed(now);
  count_up();
}

Dispatcher::ReplicaView Dispatcher::view(ReplicaIndex index, Instant now) const {
  const Replica& replica = replicas_[index.value()];
  ReplicaView view;
  view.state = replica.health.state();
  view.outstanding = replica.outstanding;
  view.pinned = replica.pinned;
  view.completed = replica.completed;
  view.failed = replica.failed;
  view.ejections = replica.health.ejections();
  view.busy = replica.busy;
  if (replica.outstanding > 0 && now > replica.busy_since) {
    view.busy += now - replica.busy_since;
  }
  std::uint64_t most = 0;
  for (const Model& model : models_) {
    const Lane& lane = model.lanes[index.value()];
    if (lane.completed > most) {
      most = lane.completed;
      view.per_second = lane.learned.per_second();
    }
  }
  return view;
}

}  // namespace septet::balance
