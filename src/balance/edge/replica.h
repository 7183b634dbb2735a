// Replica: one upstream with its connections, and the probe that asks for its health.
//
// Owned by the Reactor, used by its thread. Idle connections are kept, the last used first.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "balance/dispatcher.h"
#include "balance/edge/proxy.h"
#include "balance/edge/upstream_connection.h"

namespace septet::balance {

class Reactor;

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
  // Whether nothing is under way, so that it can go.
  bool quiet() const;

  // Sends a request; its reply or failure goes to its sink.
  void send(Exchange& exchange);
  void probe();
  // Ends what has taken too long, and connections whose sink is gone.
  void check_time(Instant now);
  void close_unwanted();

  void reply_complete(UpstreamConnection& connection) override;
  void reply_failed(UpstreamConnection& connection, Failure failure) override;
  void idle_connection_lost(UpstreamConnection& connection) override;

 private:
  // GET /v2/health/ready.
  struct Probe final : ReplySink {
    explicit Probe(Replica& owner) : replica(owner), exchange(*this) {}
    void on_whole_reply(const inference::HttpHead& head, std::string_view body) override;
    void on_reply_head(const inference::HttpHead& head) override;
    Flow on_reply_data(std::string_view data, std::string_view wire) override;
    void on_reply_end() override;
    void on_no_reply(unsigned status, std::string_view message) override;
    Replica& replica;
    Exchange exchange;
    unsigned status = 0;
  };

  UpstreamConnection* connect(Exchange& exchange);
  void no_reply(Exchange& exchange, Failure failure);
  void bury(UpstreamConnection& connection);
  void probe_ended(bool ready);

  Reactor& reactor_;
  Upstream upstream_;
  ReplicaIndex index_;
  std::vector<std::unique_ptr<UpstreamConnection>> connections_;
  std::vector<UpstreamConnection*> idle_;
  Probe probe_;
};

}  // namespace septet::balance
