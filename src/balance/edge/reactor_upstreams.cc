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
  const bool wanted = std::any_of(replicas_.begin(), replicas_.end(), [](const auto& replica) {
    return replica && replica->takes_slots();
  });
  slots_in_use_ = wanted && bodies_.open_region(options_.max_body_bytes);
}

}  // namespace septet::balance
