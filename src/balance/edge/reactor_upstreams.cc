// The Reactor's set of replicas: changing it, and what is told about it.

#include <algorithm>

#include "balance/edge/reactor.h"
#include "balance/metrics_text.h"

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
    replica.reset();
  }
}

UpstreamStats Reactor::stats_of(const Replica& replica) const {
  const Dispatcher::ReplicaView view = dispatcher_.view(replica.index());
  UpstreamStats stats;
  stats.name = replica.name();
  stats.state = to_string(view.state);
  stats.in_flight = view.outstanding;
  stats.completed = view.completed;
  stats.failed = view.failed;
  stats.ejections = view.ejections;
  stats.busy_seconds = to_seconds(view.busy);
  stats.speed = view.per_second;
  return stats;
}

ProxyStats Reactor::stats() const {
  ProxyStats stats = stats_;
  stats.connections = clients_.size();
  stats.queued = dispatcher_.queued();
  stats.in_flight = dispatcher_.outstanding();
  stats.retries = dispatcher_.retries();
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    if (replica) {
      stats.upstreams.push_back(stats_of(*replica));
    }
  }
  return stats;
}

std::string Reactor::with_own_metrics(std::string_view replicas_text) const {
  MetricsText text;
  text.add(replicas_text);
  const ProxyStats stats = this->stats();
  const auto own = [&text](std::string_view name, std::string_view type, std::string_view help,
                           std::string_view labels,
                           double value) { text.add_own(name, type, help, labels, value); };
  const auto number = [](std::uint64_t value) { return static_cast<double>(value); };
  own("septet_balance_requests_total", "counter", "Requests received", "", number(stats.requests));
  own("septet_balance_retries_total", "counter", "Requests sent again after a replica failed", "",
      number(stats.retries));
  own("septet_balance_refused_total", "counter", "Requests answered 503 without a replica", "",
      number(stats.refused));
  own("septet_balance_queued", "gauge", "Requests waiting for a replica", "", number(stats.queued));
  own("septet_balance_connections", "gauge", "Open client connections", "",
      number(stats.connections));
  const std::string_view replies = "septet_balance_replies_total";
  own(replies, "counter", "Replies by status class", "{code=\"2xx\"}", number(stats.replies_2xx));
  own(replies, "counter", "Replies by status class", "{code=\"4xx\"}", number(stats.replies_4xx));
  own(replies, "counter", "Replies by status class", "{code=\"5xx\"}", number(stats.replies_5xx));
  for (const UpstreamStats& upstream : stats.upstreams) {
    const std::string labels = "{replica=\"" + upstream.name + "\"}";
    own("septet_replica_up", "gauge", "1 if the replica takes requests", labels,
        upstream.state == "up" ? 1 : 0);
    own("septet_replica_in_flight", "gauge", "Requests at the replica", labels,
        number(upstream.in_flight));
    own("septet_replica_completed_total", "counter", "Replies of the replica", labels,
        number(upstream.completed));
    own("septet_replica_failed_total", "counter", "Requests that got no reply", labels,
        number(upstream.failed));
    own("septet_replica_ejections_total", "counter", "Times the replica was taken out", labels,
        number(upstream.ejections));
    own("septet_replica_busy_seconds_total", "counter", "Time with a request outstanding", labels,
        upstream.busy_seconds);
    own("septet_replica_speed", "gauge", "Learned speed, requests per busy second", labels,
        upstream.speed);
  }
  return text.text();
}

}  // namespace septet::balance
