// Replica: one upstream with its connections, and the questions that are put to it.
//
// Owned by the Reactor, used by its thread. Idle connections are kept, the last used first.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "balance/dispatcher.h"
#include "balance/edge/foreign_memory.h"
#include "balance/edge/grpc_upstream.h"
#include "balance/edge/proxy.h"
#include "balance/edge/side_channel.h"
#include "balance/edge/upstream_connection.h"

namespace septet::balance {

class Reactor;

// What to tell a client whose request got no reply.
const char* failure_text(Failure failure);
unsigned failure_status(Failure failure);  // HTTP's

class Replica final : public UpstreamConnection::Owner {
 public:
  Replica(Reactor& reactor, Upstream upstream, ReplicaIndex index);
  ~Replica() override;
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  const std::string& name() const { return upstream_.name; }
  const Upstream& upstream() const { return upstream_; }
  ReplicaIndex index() const { return index_; }
  bool serves(std::string_view model) const;
  bool speaks_grpc() const { return grpc_.has_value(); }
  // Whether it reads bodies where they lie in shared memory: septet's own, and others that know the
  // named region or could; and how many it was given so.
  bool takes_slots() const { return takes_slots_; }
  bool takes_slot_calls() const { return takes_slots_ && takes_slot_calls_; }
  const ForeignMemory& foreign_memory() const { return foreign_; }
  std::uint64_t slot_requests() const { return slot_requests_; }
  // Whether nothing is under way, so that it can go.
  bool quiet() const;

  // Sends a request; its reply or failure goes to its sink.
  void send(Exchange& exchange);
  void send(GrpcCall& call);
  void probe();
  // Asks how much of the model it takes at a time, and tells the dispatcher.
  void learn_capacity(const std::string& model, ModelIndex index);
  void ask_statistics();
  // How long an answer takes that costs the replica nothing; zero = not known yet.
  Duration round_trip() const { return round_trip_; }
  void measure_round_trip();
  // A draining replica that is quiet is asked for its statistics once more; true when that is done.
  bool said_last_words();
  // Names its counters: two lives of one name are two.
  std::string statistics_key() const;
  // What the dispatcher says of its busy time; about once a second.
  void note_busy(Instant now, Duration busy);
  // Of the time between the last two such.
  double busy_share() const { return busy_share_; }
  // Ends what has taken too long, and connections whose sink is gone.
  void check_time(Instant now);
  void close_unwanted();

  void reply_complete(UpstreamConnection& connection) override;
  void reply_failed(UpstreamConnection& connection, Failure failure) override;
  void reply_streams(UpstreamConnection& connection) override;
  void slot_ignored(UpstreamConnection& connection) override;
  void idle_connection_lost(UpstreamConnection& connection) override;

 private:
  UpstreamConnection* connect(Exchange& exchange);
  UpstreamConnection::Bodies bodies_for(const Exchange& exchange) const;
  void no_reply(Exchange& exchange, Failure failure);
  void bury(UpstreamConnection& connection);
  void probe_ended(bool ready);
  void note_round_trip();

  Reactor& reactor_;
  Upstream upstream_;
  ReplicaIndex index_;
  std::vector<std::unique_ptr<UpstreamConnection>> connections_;
  std::vector<UpstreamConnection*> idle_;
  SideChannel side_;
  ForeignMemory foreign_;
  std::optional<GrpcUpstream> grpc_;
  Instant busy_noted_;
  Duration busy_then_{};
  double busy_share_ = 0;
  bool takes_slots_ = false;
  bool takes_slot_calls_ = false;  // gRPC's, when it takes slots
  std::uint64_t slot_requests_ = 0;
  Duration round_trip_{};
  bool last_words_ = false;  // its statistics were asked for before it goes
};

}  // namespace septet::balance
