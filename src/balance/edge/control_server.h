// ControlServer: where the set of replicas is shown and changed while the balancer runs.
//
//   GET | PUT | POST | DELETE /septet/upstreams      (balance/upstream_change.h)
//
// Apart from the listener of clients, for it may do what they may not: a Unix socket for its owner,
// or a port of loopback. A thread of its own, since names are looked up; one request a connection,
// one connection at a time, each for five seconds at most. Owned by the verb.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "balance/edge/upstream_keeper.h"
#include "os/endpoint.h"
#include "os/unique_fd.h"

namespace septet::balance {

class ControlServer {
 public:
  // kUsage: an address that others can reach; kPrecondition: it is in use.
  static Result<std::unique_ptr<ControlServer>> start(const os::Endpoint& endpoint,
                                                      UpstreamKeeper& keeper);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  const os::Endpoint& endpoint() const { return endpoint_; }

 private:
  ControlServer(os::Endpoint endpoint, os::UniqueFd listener, os::UniqueFd leave,
                UpstreamKeeper& keeper);
  void run();
  void serve(int client);

  os::Endpoint endpoint_;
  os::UniqueFd listener_;
  os::UniqueFd leave_;  // eventfd: the end of this object
  UpstreamKeeper& keeper_;
  std::thread thread_;  // last: uses what is above
};

}  // namespace septet::balance
