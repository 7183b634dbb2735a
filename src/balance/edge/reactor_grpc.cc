// The Reactor's queues by model and protocol, and what else only gRPC needs.

#include <algorithm>

#include "balance/edge/http2_connection.h"
#include "balance/edge/reactor.h"

namespace septet::balance {

namespace {

constexpr std::size_t kMaxQueues = 256;

// No model's name begins with a blank.
std::string queue_key(Reactor::Protocol protocol, std::string_view model) {
  return (protocol == Reactor::Protocol::kGrpc ? " " : "") + std::string(model);
}

}  // namespace

bool Reactor::may_take(const Replica& replica, const ModelQueue& queue) const {
  return (queue.model.empty() || replica.serves(queue.model)) &&
         (queue.protocol == Protocol::kHttp || replica.speaks_grpc());
}

const Reactor::ModelQueue& Reactor::find_queue(Protocol protocol, std::string_view model) const {
  const bool own = protocol == Protocol::kGrpc && mixed_;
  auto found = own ? models_.find(queue_key(protocol, model)) : models_.find(model);
  if (found == models_.end()) {
    found = own ? models_.find(queue_key(protocol, "")) : models_.find("");
  }
  return found->second;
}

ModelIndex Reactor::add_model(Protocol protocol, std::string_view name) {
  const ModelQueue queue{std::string(name), protocol, dispatcher_.add_model()};
  models_.emplace(queue_key(protocol, name), queue);
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    if (replica) {
      dispatcher_.set_eligible(replica->index(), queue.index, may_take(*replica, queue));
    }
  }
  return queue.index;
}

void Reactor::learn_model(Protocol protocol, std::string_view model) {
  const Protocol own = mixed_ ? protocol : Protocol::kHttp;
  const bool known =
      own == Protocol::kHttp ? models_.contains(model) : models_.contains(queue_key(own, model));
  if (model.empty() || known || models_.size() >= kMaxQueues) {
    return;
  }
  const ModelIndex index = add_model(own, model);
  for (Replica* const replica : replicas_up()) {
    replica->learn_capacity(std::string(model), index);
  }
}

void Reactor::replica_is_up(Replica& replica) {
  for (const auto& [key, queue] : models_) {
    if (!queue.model.empty()) {
      replica.learn_capacity(queue.model, queue.index);
    }
  }
}

// After a change of the set: calls that wait are put where replicas that speak gRPC will find them.
void Reactor::sort_protocols() {
  std::size_t all = 0;
  grpc_replicas_ = 0;
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    if (replica && dispatcher_.view(replica->index()).state != ReplicaState::kDraining) {
      ++all;
      grpc_replicas_ += replica->speaks_grpc() ? 1 : 0;
    }
  }
  const bool mixed = grpc_replicas_ > 0 && grpc_replicas_ < all;
  if (mixed == mixed_) {
    return;
  }
  mixed_ = mixed;
  for (const auto& [key, client] : clients_) {
    if (auto* const connection = dynamic_cast<Http2Connection*>(client.get())) {
      connection->requeue_calls();
    }
  }
}

ModelIndex Reactor::calls_of_any_model() const {
  return models_.find(queue_key(Protocol::kGrpc, ""))->second.index;
}

void Reactor::serve_http2(os::UniqueFd fd, std::unique_ptr<inference::TlsStream> tls,
                          std::string_view received) {
  auto owned = std::make_unique<Http2Connection>(*this);
  Http2Connection& connection = *owned;
  clients_.emplace(&connection, std::move(owned));
  if (!connection.begin(std::move(fd), std::move(tls), received).ok()) {
    retire(connection);
  }
}

void Reactor::flush_later(Http2Session& session) {
  if (std::find(to_flush_.begin(), to_flush_.end(), &session) == to_flush_.end()) {
    to_flush_.push_back(&session);
  }
}

bool Reactor::flush_sessions() {
  const bool any = !to_flush_.empty();
  while (!to_flush_.empty()) {
    Http2Session* const session = to_flush_.back();
    to_flush_.pop_back();
    session->flush();  // may add others
  }
  return any;
}

}  // namespace septet::balance
