// ControlServer: JSON over HTTP/1.1 on a Unix socket, for the daemon's own interface.
//
//   listener --> connection: head -> body -> handler ... respond           -> next head
//                                                   ... open_stream, send_line, ... end_stream
//
// A stream is a chunked response of JSON lines that stays open as long as both sides want; it is
// how a holder hears of its lease, and its end is how the daemon hears of the holder's. Who asks is
// known from the socket (SO_PEERCRED), never from what is said. Small messages, few clients: not
// for the data plane. Owned by the daemon; everything in its loop's thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "inference/http1.h"
#include "os/endpoint.h"
#include "os/event_loop.h"

namespace septet::agent {

struct Peer {
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;
};

struct ControlRequest {
  std::string method;
  std::string path;  // without the query
  std::map<std::string, std::string> query;
  std::string body;
  Peer peer;

  // The path's pieces: "/v1/leases/7" has three.
  std::vector<std::string_view> segments() const;
};

struct ControlServerOptions {
  std::size_t max_body_bytes = 64 * 1024;
  std::size_t max_connections = 4096;
  std::size_t max_connections_per_user = 1024;  // one user cannot shut out the others
  std::size_t max_unsent_bytes = 1 << 20;       // a client that does not read is cut off
  Duration request_timeout = seconds(10);       // from the first byte to the last
};

// One request being answered. Valid until its answer is complete or on_close() was called.
class ControlExchange {
 public:
  virtual ~ControlExchange() = default;
  virtual const ControlRequest& request() const = 0;
  // The whole answer, once.
  virtual void respond(unsigned status, const std::string& json) = 0;
  // Or a stream of lines.
  virtual void open_stream() = 0;
  virtual void send_line(const std::string& json) = 0;
  virtual void end_stream() = 0;
  // Called once if the client goes before the answer is complete.
  virtual void on_close(std::function<void()> callback) = 0;
};

// What answers; may keep the exchange and answer later.
using ControlHandler = std::function<void(ControlExchange&)>;

class ControlServer : private os::EventLoop::Watcher {
 public:
  // Listens on the path, for every user of the machine. A stale socket is replaced, a live one
  // refused.
  static Result<std::unique_ptr<ControlServer>> listen(os::EventLoop& loop, const std::string& path,
                                                       ControlHandler handler,
                                                       const ControlServerOptions& options);
  ~ControlServer() override;
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

 private:
  class Connection;

  ControlServer(os::EventLoop& loop, std::string path, ControlHandler handler,
                const ControlServerOptions& options);
  void on_ready(std::uint32_t events) override;
  void accept_all();
  void remove(Connection& connection);

  os::EventLoop& loop_;
  std::string path_;
  ControlHandler handler_;
  ControlServerOptions options_;
  os::UniqueFd listener_;
  std::map<int, std::unique_ptr<Connection>> connections_;  // by descriptor
  std::map<uid_t, std::size_t> per_user_;
};

}  // namespace septet::agent
