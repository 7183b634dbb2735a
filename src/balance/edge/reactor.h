// Reactor: one event loop with everything it serves: listeners, clients, replicas, dispatcher.
//
// Owned by Proxy, run by one thread; only post(), stop() and the loop's own thread-safe calls may
// come from others. Nothing in it is shared, so nothing in it is locked.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "balance/dispatcher.h"
#include "balance/edge/access_log.h"
#include "balance/edge/client.h"
#include "balance/edge/memory.h"
#include "balance/edge/proxy.h"
#include "balance/edge/replica.h"
#include "balance/edge/request_wishes.h"
#include "balance/request_nature.h"
#include "balance/sequence_table.h"
#include "balance/statistics_keeper.h"
#include "os/event_loop.h"

namespace septet::balance {

class GrpcCall;
class Http2Session;

class Reactor {
 public:
  enum class Protocol { kHttp, kGrpc };

  explicit Reactor(ProxyOptions options);
  ~Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  Result<Ok> listen();
  const std::vector<os::Endpoint>& endpoints() const { return endpoints_; }
  void run();
  void stop() { loop_.stop(); }
  void post(std::function<void()> function) { loop_.post(std::move(function)); }

  void set_upstreams(std::vector<Upstream> upstreams);
  ProxyStats stats() const;

  // For connections, replicas and fan-outs.
  os::EventLoop& loop() { return loop_; }
  Instant now() const { return loop_.now(); }
  const ProxyOptions& options() const { return options_; }
  BufferPool& buffers() { return buffers_; }
  BodyPool& bodies() { return bodies_; }
  Dispatcher& dispatcher() { return dispatcher_; }
  UpstreamConnection::Context upstream_context();
  std::vector<Replica*> replicas_up();
  StatisticsKeeper& statistics() { return statistics_; }
  // Whether bodies are put into slots: a replica takes them, and there is memory for it.
  bool slots_in_use() const { return slots_in_use_; }
  // The same of messages of gRPC's calls.
  bool slot_calls_in_use() const { return slot_calls_in_use_; }
  void slots_changed();
  void replica_is_up(Replica& replica);

  // What decides where a request goes.
  struct Submission {
    Protocol protocol = Protocol::kHttp;
    std::string_view model;
    std::uint64_t body_bytes = 0;
    RequestWishes wishes;
    SequenceWish sequence{};
  };
  // Queues the request for a replica that serves the model.
  void submit(Dispatched& request, const Submission& about);
  // The sink goes away.
  void abandon(Exchange& exchange);
  // One of two copies has been answered: the other one's reply will be thrown away.
  void drop_rival(Exchange& exchange);
  bool hedges() const { return options_.hedge_percentile > 0; }
  // Part of the reply has reached the client.
  void forbid_repeat(Dispatched& request);
  // A replica has answered for that model, so it gets a queue of its own.
  void learn_model(Protocol protocol, std::string_view model);
  // A replica for a call that stays with it until unpin(), that of the sequence if it is of one;
  // null when none is up.
  Replica* pin(GrpcCall& call, const SequenceWish& sequence);
  // The replica of the request's sequence has failed. What to add to the message: nothing if it is
  // of none, or if the replica may still have it.
  std::string_view lose_sequence(const Dispatched& request, Failure failure);
  void unpin(ReplicaIndex replica) { dispatcher_.unpin(replica); }
  // Whether any replica of the set has a gRPC address.
  bool speaks_grpc() const { return grpc_replicas_ > 0; }
  // Carries out what the dispatcher has decided. Called at the end of every event.
  void pump();

  // The socket of a client that has sent HTTP/2's preface, and what was read from it.
  void serve_http2(os::UniqueFd fd, std::unique_ptr<inference::TlsStream> tls,
                   std::string_view received);
  // Writes what the session has to say, at the end of the event.
  void flush_later(Http2Session& session);
  // Now; whether there was anything.
  bool flush_sessions();

  void wait_for_memory(Client& client) { waiting_for_memory_.push_back(&client); }
  void memory_released() { memory_released_ = true; }
  // Destroyed in a later round, when nothing of it is on the stack.
  void retire(Client& client);
  void bury(std::unique_ptr<UpstreamConnection> connection);

  void count_request() { ++stats_.requests; }
  void count_reply(unsigned status);
  std::string with_own_metrics(std::string_view replicas_text) const;
  // The same about the proxy alone, for a view of it.
  std::string status_json() const;
  AccessLog& access_log() { return access_log_; }

 private:
  struct Listener final : os::EventLoop::Watcher {
    Listener(Reactor& owner, os::UniqueFd listening, const inference::TlsIdentity* identity)
        : reactor(owner), fd(std::move(listening)), tls(identity) {}
    void on_ready(std::uint32_t events) override;
    Reactor& reactor;
    os::UniqueFd fd;
    const inference::TlsIdentity* tls;  // null: not encrypted
  };

  // A queue of the dispatcher. While only some replicas speak gRPC, its requests wait in queues of
  // their own; else both protocols share the model's.
  struct ModelQueue {
    std::string model;  // empty = those that are not known yet
    Protocol protocol = Protocol::kHttp;
    ModelIndex index;
  };

  void accept_from(Listener& listener);
  void pause_accepting(Listener& listener);
  void sweep();
  void sweep_replicas(Instant now);
  void ask_replicas();
  void arm_timer();
  void wake_for_memory();
  bool join_sequence(Dispatched& request, const Submission& about, Dispatcher::Arrival& arrival);
  std::optional<ReplicaIndex> place_sequence(const std::string& key, const SequenceWish& wish,
                                             ModelIndex model);
  void end_sequence(const std::string& key);
  void end_idle_sequences();
  void refuse(Dispatched& request, Dispatcher::Refusal why);
  void remove_drained();
  const ModelQueue& find_queue(Protocol protocol, std::string_view model) const;
  ModelIndex calls_of_any_model() const;
  ModelIndex add_model(Protocol protocol, std::string_view name);
  bool may_take(const Replica& replica, const ModelQueue& queue) const;
  void sort_protocols();
  std::uint32_t tenant_number(std::string_view name);
  UpstreamStats stats_of(const Replica& replica) const;
  std::string transport_of(const Replica& replica) const;

  ProxyOptions options_;
  os::EventLoop loop_;
  BufferPool buffers_;
  BodyPool bodies_;
  Dispatcher dispatcher_;
  std::map<std::string, ModelQueue, std::less<>> models_;  // by queue_key() of reactor_grpc.cc
  std::size_t grpc_replicas_ = 0;
  bool mixed_ = false;  // some replicas speak gRPC, others do not
  std::map<std::string, std::uint32_t, std::less<>> tenants_;
  SequenceTable sequences_;
  StatisticsKeeper statistics_;
  AccessLog access_log_;
  std::uint64_t sweeps_ = 0;
  std::vector<std::unique_ptr<Replica>> replicas_;  // by ReplicaIndex; empty places are free
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<os::Endpoint> endpoints_;
  std::map<const Client*, std::unique_ptr<Client>> clients_;
  std::vector<std::pair<Instant, std::unique_ptr<Client>>> retired_;
  std::vector<std::pair<Instant, std::unique_ptr<UpstreamConnection>>> buried_;
  std::vector<Http2Session*> to_flush_;
  std::deque<Client*> waiting_for_memory_;
  bool memory_released_ = false;
  bool slots_in_use_ = false;
  bool slot_calls_in_use_ = false;
  bool has_unwanted_ = false;
  bool pumping_ = false;
  os::EventLoop::Timer timer_;
  ProxyStats stats_;
};

}  // namespace septet::balance
