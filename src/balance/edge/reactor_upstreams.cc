// The Reactor's set of replicas: changing it.

#include <algorithm>

#include "balance/edge/reactor.h"

namespace septet::balance {

void Reactor::set_upstreams(std::vector<Upstream> upstreams) {
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    if (replica &&
        std::find(upstreams.begin(), upstreams.end(), replica->upstream()) == upstreams.end()) {
      dispatcher_.drain(replica->index());
    }
  }
  for (Upstream& upstream : upstreams) {
    const auto same = [this, &upstream](const std::unique_ptr<Replica>& replica) {
      return replica && replica->upstream() == upstream &&
             dispatcher_.view(replica->index()).state != ReplicaState::kDraining;
    };
    if (std::any_of(replicas_.begin(), replicas_.end(), same)) {
      continue;
    }
    const ReplicaIndex index = dispatcher_.add_replica(now());
    if (index.value() >= replicas_.size()) {
      replicas_.resize(index.value() + 1U);
    }
    replicas_[index.value()] = std::make_unique<Replica>(*this, std::move(upstream), index);
    for (const auto& [key, queue] : models_) {
      dispatcher_.set_eligible(index, queue.index, may_take(*replicas_[index.value()], queue));
    }
  }
  sort_protocols();
  remove_drained();
  pump();
}

void Reactor::remove_drained() {
  for (std::unique_ptr<Replica>& replica : replicas_) {
    if (!replica || !replica->quiet() || !dispatcher_.idle(replica->index()) ||
        dispatcher_.view(replica->index()).state != ReplicaState::kDraining ||
        !replica->said_last_words()) {
      continue;
    }
    statistics_.departed(replica->statistics_key());
    dispatcher_.remove(replica->index());
    flush_sessions();  // none of its sessions may wait for it any more
    replica.reset();
    slots_changed();
  }
}

void Reactor::slots_changed() {
  const auto any = [this](auto is_so) {
    return std::any_of(replicas_.begin(), replicas_.end(),
                       [&is_so](const auto& replica) { return replica && is_so(*replica); });
  };
  if (any([](const Replica& replica) { return replica.takes_slots(); })) {
    slots_in_use_ = bodies_.open_region(BodyPool::Region::kSealed, options_.max_body_bytes);
    slot_calls_in_use_ =
        slots_in_use_ && any([](const Replica& replica) { return replica.takes_slot_calls(); });
    return;
  }
  slot_calls_in_use_ = false;
  const bool wanted =
      any([](const Replica& replica) { return replica.foreign_memory().wants_region(); }) &&
      bodies_.open_region(BodyPool::Region::kNamed, options_.max_body_bytes);
  slots_in_use_ =
      wanted && any([](const Replica& replica) { return replica.foreign_memory().registered(); });
}

}  // namespace septet::balance
