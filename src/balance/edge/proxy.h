// Proxy: one address in front of all replicas (KServe v2 over HTTP/1.1, HTTP/2 and gRPC).
//
//   Result<std::unique_ptr<Proxy>> proxy = Proxy::start(options, upstreams);
//   ... (*proxy)->endpoint() is where clients go ...
//   (*proxy)->set_upstreams(changed);   // no request is lost
//   (*proxy)->stats();
//
// Owned by a verb or by `compare`; runs its own reactor thread from start() until it is destroyed.
// Every method may be called from any thread.
//
// Request bodies are held in memory until the reply is known (never on disk), so a replica that
// dies in the middle costs no request. Health, metadata, index, statistics and metrics are answered
// for all replicas together; everything else goes to one replica, chosen by the policy.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "balance/policy.h"
#include "base/result.h"
#include "base/time.h"
#include "inference/edge/tls_stream.h"
#include "os/endpoint.h"

namespace septet::balance {

// A replica as the control plane describes it. Two entries with the same name are the same replica:
// set_upstreams() keeps its connections, learned speed and statistics.
struct Upstream {
  std::string name;  // e.g. "MIG-..." or the address; unique in a set
  os::Endpoint endpoint;
  std::vector<std::string> models;     // what it serves; empty = everything
  std::optional<os::Endpoint> grpc{};  // where its gRPC server is; nothing = it takes no calls

  bool operator==(const Upstream&) const = default;
};

struct ProxyOptions {
  std::vector<os::Endpoint> listen;  // TCP (port 0 = any free one) or Unix sockets
  std::shared_ptr<const inference::TlsIdentity> tls{};  // of TCP; null = not encrypted
  Policy policy = Policy::kPull;
  double hedge_percentile = 0;                 // as a share; see dispatcher.h; 0 = no hedging
  double hedge_budget = 0.05;                  // hedges per completed request, at most
  std::size_t max_connections = 16384;         // clients; more are refused by closing
  std::size_t max_queued = 4096;               // requests waiting for a replica, per model
  std::size_t max_head_bytes = 32 * 1024;      // of a request or reply; more = 431 or 502
  std::size_t max_body_bytes = 64ULL << 20U;   // of a request; more = 413
  std::size_t memory_bytes = 512ULL << 20U;    // of all bodies together; full = clients wait
  std::size_t kept_reply_bytes = 1ULL << 20U;  // a reply up to this is repeatable until complete
  Duration request_timeout = seconds(60);      // arrival to reply, if the client names none
  Duration head_timeout = seconds(10);         // a client's head, from its first byte to its last
  Duration body_timeout = seconds(30);         // without progress of a client's body
  Duration idle_timeout = seconds(300);        // a silent keep-alive client
  bool slots = true;  // septet's replicas on Unix sockets read large bodies in shared memory
  bool foreign_shared_memory = false;    // others on this machine, too: the protocol's extension
  std::uint64_t seed = 1;                // of the random policies
  std::string access_log{};              // a file, "-" = standard error; empty = none
  std::uint64_t access_log_every = 100;  // one request in so many is written
};

// One replica as the proxy sees it.
struct UpstreamStats {
  std::string name;
  std::string state;                // "joining", "up", "ejected", "draining"
  std::string transport;            // "tcp", "unix"; and large bodies in "slots" or "shared memory"
  std::uint64_t slot_requests = 0;  // whose body was read there
  std::uint64_t in_flight = 0;
  std::uint64_t completed = 0;  // replies, whatever their status
  std::uint64_t failed = 0;     // connection lost, garbage or time-out instead of a reply
  std::uint64_t ejections = 0;
  std::uint64_t streams = 0;  // gRPC streams and sequences that stay with it
  double busy_seconds = 0;    // time with at least one request outstanding
  double busy_share = 0;      // the same of the last second or so, 0..1
  double round_trip_us = 0;   // of an answer that costs it nothing; 0 = not known yet
  double speed = 0;           // learned, requests per busy second; 0 = not known yet
};

// A model with a queue of its own; the empty name stands for those that are not known yet.
struct QueueStats {
  std::string model;
  std::string protocol;      // "grpc" where calls wait apart, else "http" for both
  std::uint64_t queued = 0;  // now
};

// Counters since start(); they never go back, also when a replica leaves.
struct ProxyStats {
  std::uint64_t connections = 0;  // open now
  std::uint64_t queued = 0;       // waiting for a replica now
  std::uint64_t in_flight = 0;    // at a replica now
  std::uint64_t requests = 0;
  std::uint64_t replies_2xx = 0;
  std::uint64_t replies_4xx = 0;
  std::uint64_t replies_5xx = 0;
  std::uint64_t retries = 0;          // sent again after a replica failed
  std::uint64_t hedges_won = 0;       // sent twice, and the second copy was answered first
  std::uint64_t hedges_lost = 0;      // the first was
  std::uint64_t hedges_failed = 0;    // the second got no reply
  std::uint64_t hedges_dropped = 0;   // the client went away
  std::uint64_t refused = 0;          // answered 503 without reaching a replica
  std::uint64_t sequences = 0;        // now, that stay with their replicas
  std::uint64_t slots_used = 0;       // now
  std::uint64_t slot_bytes_used = 0;  // now, of slot_bytes
  std::uint64_t slot_bytes = 0;       // of the shared memory region; 0 = there is none
  std::vector<UpstreamStats> upstreams;
  std::vector<QueueStats> queues;
};

class Proxy {
 public:
  // Listens and begins to serve; replicas may still be coming up. kUsage for a bad set of upstreams
  // (no name, a name twice), listen_on()'s errors for the addresses.
  static Result<std::unique_ptr<Proxy>> start(ProxyOptions options,
                                              std::vector<Upstream> upstreams);
  // Stops at once: open connections are closed.
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Where it listens, in the order of ProxyOptions::listen, with the real ports.
  const std::vector<os::Endpoint>& endpoints() const;
  const os::Endpoint& endpoint() const { return endpoints().front(); }

  // Replaces the set. New ones are probed and join; those that are gone finish what they have in
  // flight and get nothing new.
  Result<Ok> set_upstreams(std::vector<Upstream> upstreams);

  ProxyStats stats() const;

 private:
  class Impl;
  explicit Proxy(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace septet::balance
