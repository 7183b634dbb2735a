// LeaseApi: the lease daemon's interface, JSON over HTTP on its Unix socket.
//
//   POST   /v1/leases               a request; "stream": true answers with lines of news
//   GET    /v1/leases               what runs and waits; ?user=NAME
//   GET    /v1/leases/ID            one lease with its environment
//   PUT    /v1/leases/ID            renew: {"time": "2h", "generation": 3}
//   DELETE /v1/leases/ID            release
//   POST   /v1/leases/ID/attach     the holder's program again, after a restart of the daemon
//   POST   /v1/leases/ID/processes  {"pid": 42}: under the lease's limits
//   POST   /v1/leases/ID/activity   {"state": "busy"}: e.g. of a notebook
//   GET    /v1/queue, /v1/partitions, /v1/history?limit=50&user=NAME, /v1/status
//
// A stream's lines: {"event": "queued" | "granted" | "refused" | "warned" | "warning_withdrawn" |
// "ending" | "ended", ...}. The stream of an attached lease is its holder's hold on it: when it
// closes, the lease ends. Owned by the daemon, used in its loop's thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "agent/edge/control_server.h"
#include "lend/edge/lease_json.h"
#include "lend/edge/lender.h"

namespace septet::agent {

class LeaseApi {
 public:
  // note: said in /v1/status and with every lease, e.g. that the GPU is simulated.
  LeaseApi(lend::Lender& lender, std::string note);
  ~LeaseApi();
  LeaseApi(const LeaseApi&) = delete;
  LeaseApi& operator=(const LeaseApi&) = delete;

  // Answers what is below /v1/; false when the path is not ours.
  bool handle(ControlExchange& exchange);

  // The owner behind a user id: name, and those of its groups that have a quota.
  lend::Owner owner_of(const Peer& peer);

 private:
  class Holder;

  void acquire(ControlExchange& exchange);
  void attach(ControlExchange& exchange, lend::LeaseId id);
  void renew(ControlExchange& exchange, lend::LeaseId id);
  void release(ControlExchange& exchange, lend::LeaseId id);
  void show(ControlExchange& exchange, lend::LeaseId id);
  void add_process(ControlExchange& exchange, lend::LeaseId id);
  void report_activity(ControlExchange& exchange, lend::LeaseId id);
  void list(ControlExchange& exchange);
  void queue(ControlExchange& exchange);
  void partitions(ControlExchange& exchange);
  void history(ControlExchange& exchange);
  void status(ControlExchange& exchange);
  bool handle_lease(ControlExchange& exchange);

  lend::Json lease_view(const lend::Lease& lease) const;
  lend::Json granted_view(const lend::Lease& lease) const;
  void drop(Holder& holder);

  lend::Lender& lender_;
  std::string note_;
  std::map<uid_t, lend::Owner> owners_;
  std::map<Holder*, std::unique_ptr<Holder>> holders_;
};

}  // namespace septet::agent
