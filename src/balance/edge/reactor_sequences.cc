// The Reactor's sequences: each at one replica, which it pins.

#include "balance/edge/reactor.h"

namespace septet::balance {

// The replica that has it, or one for it; nothing when there is none. A sequence that starts anew
// need not stay where it cannot be served.
std::optional<ReplicaIndex> Reactor::place_sequence(const std::string& key,
                                                    const SequenceWish& wish, ModelIndex model) {
  std::optional<ReplicaIndex> replica = sequences_.find(now(), key);
  if (replica && wish.starts && dispatcher_.view(*replica).state != ReplicaState::kUp) {
    end_sequence(key);
    replica.reset();
  }
  if (!replica && !sequences_.full()) {
    replica = dispatcher_.pin(model);
    if (replica) {
      sequences_.begin(now(), key, *replica);
    }
  }
  return replica;
}

// False: the request was refused.
bool Reactor::join_sequence(Dispatched& request, const Submission& about,
                            Dispatcher::Arrival& arrival) {
  request.sequence = SequenceTable::key(about.model, about.sequence.id);
  arrival.only = place_sequence(request.sequence, about.sequence, arrival.model);
  if (!arrival.only) {
    refuse(request,
           sequences_.full() ? Dispatcher::Refusal::kQueueFull : Dispatcher::Refusal::kNoReplica);
    return false;
  }
  if (about.sequence.ends) {
    end_sequence(request.sequence);  // this one knows where it goes
  }
  return true;
}

Replica* Reactor::pin(GrpcCall& call, const SequenceWish& wish) {
  call.sequence.clear();
  if (wish.id.empty()) {
    const auto replica = dispatcher_.pin(calls_of_any_model());
    return replica ? replicas_[replica->value()].get() : nullptr;
  }
  call.sequence = SequenceTable::key(wish.model, wish.id);
  const auto replica = place_sequence(call.sequence, wish, calls_of_any_model());
  if (!replica) {
    return nullptr;
  }
  dispatcher_.pin_at(*replica);
  return replicas_[replica->value()].get();
}

void Reactor::end_sequence(const std::string& key) {
  if (const auto replica = sequences_.end(key)) {
    dispatcher_.unpin(*replica);
  }
}

std::string_view Reactor::lose_sequence(const Dispatched& request, Failure failure) {
  const bool is_gone = failure == Failure::kNotConnected || failure == Failure::kConnectionLost;
  if (request.sequence.empty() || !is_gone) {
    return {};
  }
  end_sequence(request.sequence);
  return "; its sequence is lost and has to begin anew";
}

// Clients that never end theirs must not hold memory, nor a replica that is to leave.
void Reactor::end_idle_sequences() {
  const auto end_idle = [this](Duration idle, std::optional<ReplicaIndex> of) {
    for (const ReplicaIndex replica : sequences_.end_idle(now() - idle, of)) {
      dispatcher_.unpin(replica);
    }
  };
  end_idle(SequenceTable::kIdle, std::nullopt);
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    if (replica && dispatcher_.view(replica->index()).state == ReplicaState::kDraining) {
      end_idle(options_.request_timeout, replica->index());
    }
  }
}

}  // namespace septet::balance
