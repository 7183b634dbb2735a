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
#include "balance/edge/client_connection.h"
#include "balance/edge/memory.h"
#include "balance/edge/proxy.h"
#include "balance/edge/replica.h"
#include "balance/statistics_keeper.h"
#include "os/event_loop.h"

namespace septet::balance {

// What a client's header says about a request.
struct RequestWishes {
  static constexpr std::uint32_t kDefaultPriority = 128;
  std::uint32_t priority = kDefaultPriority;  // 1 is the most urgent
  bool has_deadline = false;                  // it is the exchange's
  std::string_view tenant;
};

class Reactor {
 public:
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
  void replica_is_up(Replica& replica);

  // Queues the request for a replica that serves the model.
  void submit(Exchange& exchange, std::string_view model, const RequestWishes& wishes);
  // The sink goes away.
  void abandon(Exchange& exchange);
  // Part of the reply has reached the client.
  void forbid_repeat(Exchange& exchange);
  // A replica has answered for that model, so it gets a queue of its own.
  void learn_model(std::string_view model);
  // Carries out what the dispatcher has decided. Called at the end of every event.
  void pump();

  void wait_for_memory(ClientConnection& client) { waiting_for_memory_.push_back(&client); }
  void memory_released() { memory_released_ = true; }
  // Destroyed in a later round, when nothing of it is on the stack.
  void retire(ClientConnection& client);
  void bury(std::unique_ptr<UpstreamConnection> connection);

  void count_request() { ++stats_.requests; }
  void count_reply(unsigned status);
  std::string with_own_metrics(std::string_view replicas_text) const;

 private:
  struct Listener final : os::EventLoop::Watcher {
    Listener(Reactor& owner, os::UniqueFd listening) : reactor(owner), fd(std::move(listening)) {}
    void on_ready(std::uint32_t events) override;
    Reactor& reactor;
    os::UniqueFd fd;
  };

  void accept_from(Listener& listener);
  void pause_accepting(Listener& listener);
  void sweep();
  void sweep_replicas(Instant now);
  void arm_timer();
  void wake_for_memory();
  void refuse(Exchange& exchange, Dispatcher::Refusal why);
  void remove_drained();
  ModelIndex add_model(std::string_view name);
  std::uint32_t tenant_number(std::string_view name);
  UpstreamStats stats_of(const Replica& replica) const;

  ProxyOptions options_;
  os::EventLoop loop_;
  BufferPool buffers_;
  BodyPool bodies_;
  Dispatcher dispatcher_;
  std::map<std::string, ModelIndex, std::less<>> models_;
  ModelIndex unknown_model_;
  std::map<std::string, std::uint32_t, std::less<>> tenants_;
  StatisticsKeeper statistics_;
  std::uint64_t sweeps_ = 0;
  std::vector<std::unique_ptr<Replica>> replicas_;  // by ReplicaIndex; empty places are free
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<os::Endpoint> endpoints_;
  std::map<const ClientConnection*, std::unique_ptr<ClientConnection>> clients_;
  std::vector<std::pair<Instant, std::unique_ptr<ClientConnection>>> retired_;
  std::vector<std::pair<Instant, std::unique_ptr<UpstreamConnection>>> buried_;
  std::deque<ClientConnection*> waiting_for_memory_;
  bool memory_released_ = false;
  bool has_unwanted_ = false;
  bool pumping_ = false;
  os::EventLoop::Timer timer_;
  ProxyStats stats_;
};

}  // namespace septet::balance
