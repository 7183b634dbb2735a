// What the Reactor tells of itself: statistics, metrics, status.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "balance/edge/reactor.h"
#include "balance/metrics_text.h"

namespace septet::balance {

namespace {

double number(std::uint64_t value) { return static_cast<double>(value); }

// A label's value as the exposition format wants it.
std::string label_value(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\\' || c == '"') {
      out += '\\';
    }
    out += c == '\n' ? ' ' : c;
  }
  return out + '"';
}

void add_upstream(MetricsText& text, const UpstreamStats& upstream) {
  const std::string labels = "{replica=" + label_value(upstream.name) + "}";
  const auto own = [&](std::string_view name, std::string_view type, std::string_view help,
                       double value) { text.add_own(name, type, help, labels, value); };
  own("septet_replica_up", "gauge", "1 if the replica takes requests",
      upstream.state == "up" ? 1 : 0);
  own("septet_replica_in_flight", "gauge", "Requests at the replica", number(upstream.in_flight));
  own("septet_replica_streams", "gauge", "gRPC streams and sequences that stay with the replica",
      number(upstream.streams));
  own("septet_replica_completed_total", "counter", "Replies of the replica",
      number(upstream.completed));
  own("septet_replica_failed_total", "counter", "Requests that got no reply",
      number(upstream.failed));
  own("septet_replica_ejections_total", "counter", "Times the replica was taken out",
      number(upstream.ejections));
  own("septet_replica_busy_seconds_total", "counter", "Time with a request outstanding",
      upstream.busy_seconds);
  own("septet_replica_busy_share", "gauge", "Share of the last second with a request outstanding",
      upstream.busy_share);
  own("septet_replica_round_trip_seconds", "gauge", "Of an answer that costs the replica nothing",
      upstream.round_trip_us * 1e-6);
  own("septet_replica_speed", "gauge", "Learned speed, requests per busy second", upstream.speed);
  own("septet_replica_slot_requests_total", "counter",
      "Requests whose body the replica read in shared memory", number(upstream.slot_requests));
  text.add_own(
      "septet_replica_transport", "gauge",
      "How bodies reach the replica: tcp, unix, or large ones in slots or shared memory",
      "{replica=" + label_value(upstream.name) + ",transport=\"" + upstream.transport + "\"}", 1);
}

}  // namespace

std::string Reactor::transport_of(const Replica& replica) const {
  if (slots_in_use_ && bodies_.sealed_region() != nullptr && replica.takes_slots()) {
    return "slots";
  }
  if (slots_in_use_ && bodies_.named_region() != nullptr && replica.foreign_memory().registered()) {
    return "shared memory";
  }
  return replica.upstream().endpoint.is_unix() ? "unix" : "tcp";
}

UpstreamStats Reactor::stats_of(const Replica& replica) const {
  const Dispatcher::ReplicaView view = dispatcher_.view(replica.index(), now());
  UpstreamStats stats;
  stats.name = replica.name();
  stats.state = to_string(view.state);
  stats.transport = transport_of(replica);
  stats.slot_requests = replica.slot_requests();
  stats.in_flight = view.outstanding;
  stats.streams = view.pinned;
  stats.completed = view.completed;
  stats.failed = view.failed;
  stats.ejections = view.ejections;
  stats.busy_seconds = to_seconds(view.busy);
  stats.busy_share = replica.busy_share();
  stats.round_trip_us = to_microseconds(replica.round_trip());
  stats.speed = view.per_second;
  return stats;
}

ProxyStats Reactor::stats() const {
  ProxyStats stats = stats_;
  stats.connections = clients_.size();
  stats.queued = dispatcher_.queued();
  stats.in_flight = dispatcher_.outstanding();
  stats.retries = dispatcher_.retries();
  stats.sequences = sequences_.size();
  stats.hedges_won = dispatcher_.hedges().won;
  stats.hedges_lost = dispatcher_.hedges().lost;
  stats.hedges_failed = dispatcher_.hedges().failed;
  stats.hedges_dropped = dispatcher_.hedges().dropped;
  stats.slots_used = bodies_.used_slots();
  stats.slot_bytes_used = bodies_.used_slot_bytes();
  stats.slot_bytes = bodies_.region_bytes();
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    if (replica) {
      stats.upstreams.push_back(stats_of(*replica));
    }
  }
  for (const auto& [key, queue] : models_) {
    stats.queues.push_back({queue.model, queue.protocol == Protocol::kGrpc ? "grpc" : "http",
                            dispatcher_.queued(queue.index)});
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
  own("septet_balance_requests_total", "counter", "Requests received", "", number(stats.requests));
  own("septet_balance_retries_total", "counter", "Requests sent again after a replica failed", "",
      number(stats.retries));
  for (const auto& [outcome, count] :
       {std::pair("won", stats.hedges_won), std::pair("lost", stats.hedges_lost),
        std::pair("failed", stats.hedges_failed), std::pair("dropped", stats.hedges_dropped)}) {
    own("septet_balance_hedges_total", "counter",
        "Second copies of requests that took long, by how they ended",
        fmt::format("{{outcome=\"{}\"}}", outcome), number(count));
  }
  own("septet_balance_refused_total", "counter", "Requests answered 503 without a replica", "",
      number(stats.refused));
  own("septet_balance_queued", "gauge", "Requests waiting for a replica", "", number(stats.queued));
  own("septet_balance_sequences", "gauge", "Sequences that stay with their replicas", "",
      number(stats.sequences));
  own("septet_balance_connections", "gauge", "Open client connections", "",
      number(stats.connections));
  own("septet_balance_slots_used", "gauge", "Request bodies in shared memory", "",
      number(stats.slots_used));
  own("septet_balance_slot_bytes_used", "gauge", "Shared memory that they take", "",
      number(stats.slot_bytes_used));
  own("septet_balance_slot_bytes", "gauge", "Shared memory for request bodies", "",
      number(stats.slot_bytes));
  const std::string_view replies = "septet_balance_replies_total";
  own(replies, "counter", "Replies by status class", "{code=\"2xx\"}", number(stats.replies_2xx));
  own(replies, "counter", "Replies by status class", "{code=\"4xx\"}", number(stats.replies_4xx));
  own(replies, "counter", "Replies by status class", "{code=\"5xx\"}", number(stats.replies_5xx));
  // Where calls wait apart, both protocols' queues of a model are one sample.
  std::map<std::string, std::uint64_t> queued;
  for (const QueueStats& queue : stats.queues) {
    queued[queue.model] += queue.queued;
  }
  for (const auto& [model, count] : queued) {
    own("septet_balance_model_queued", "gauge", "Requests of the model that wait for a replica",
        "{model=" + label_value(model) + "}", number(count));
  }
  for (const UpstreamStats& upstream : stats.upstreams) {
    add_upstream(text, upstream);
  }
  return text.text();
}

std::string Reactor::status_json() const {
  const ProxyStats stats = this->stats();
  nlohmann::ordered_json document = {{"schema", "septet.balance/1"},
                                     {"connections", stats.connections},
                                     {"queued", stats.queued},
                                     {"in_flight", stats.in_flight},
                                     {"requests", stats.requests},
                                     {"replies_2xx", stats.replies_2xx},
                                     {"replies_4xx", stats.replies_4xx},
                                     {"replies_5xx", stats.replies_5xx},
                                     {"retries", stats.retries},
                                     {"hedges_won", stats.hedges_won},
                                     {"hedges_lost", stats.hedges_lost},
                                     {"hedges_failed", stats.hedges_failed},
                                     {"hedges_dropped", stats.hedges_dropped},
                                     {"refused", stats.refused},
                                     {"sequences", stats.sequences},
                                     {"slots_used", stats.slots_used},
                                     {"slot_bytes_used", stats.slot_bytes_used},
                                     {"slot_bytes", stats.slot_bytes},
                                     {"queues", nlohmann::ordered_json::array()},
                                     {"replicas", nlohmann::ordered_json::array()}};
  for (const QueueStats& queue : stats.queues) {
    document["queues"].push_back(
        {{"model", queue.model}, {"protocol", queue.protocol}, {"queued", queue.queued}});
  }
  for (const UpstreamStats& upstream : stats.upstreams) {
    document["replicas"].push_back({{"name", upstream.name},
                                    {"state", upstream.state},
                                    {"transport", upstream.transport},
                                    {"slot_requests", upstream.slot_requests},
                                    {"in_flight", upstream.in_flight},
                                    {"streams", upstream.streams},
                                    {"completed", upstream.completed},
                                    {"failed", upstream.failed},
                                    {"ejections", upstream.ejections},
                                    {"busy_share", upstream.busy_share},
                                    {"speed", upstream.speed},
                                    {"round_trip_us", upstream.round_trip_us}});
  }
  return document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace septet::balance
