// Endpoint: where a server listens or is reached: TCP host and port, or the path of a Unix socket.
//
// Written "host:port", "[v6]:port", ":port" (all interfaces), "unix:/path". A value type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/unique_fd.h"

namespace septet::os {

struct Endpoint {
  std::string host;        // empty = all interfaces; unused for Unix sockets
  std::uint16_t port = 0;  // 0 = any free port
  std::string unix_path;   // non-empty = a Unix socket

  bool is_unix() const { return !unix_path.empty(); }
  std::string text() const;
  bool operator==(const Endpoint&) const = default;
};

// Understands the forms above, and "http://host:port" as clients write it. A missing port becomes
// default_port.
Result<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port);

// A listening, non-blocking, close-on-exec socket. A stale Unix socket file (nobody answers) is
// replaced; a live one is an error, as is a port in use (kPrecondition, names the port).
Result<UniqueFd> listen_on(const Endpoint& endpoint);

// The endpoint a listening TCP socket really has (after port 0).
Endpoint local_endpoint(int fd);

// Starts a non-blocking connect; completion shows as EPOLLOUT, its result by connect_result().
// TCP sockets have TCP_NODELAY. Resolves numeric addresses and names (blocking for names that are
// not in the hosts file, so resolve ahead of the data path).
Result<UniqueFd> start_connect(const Endpoint& endpoint);
// 0 or the errno of the finished connect.
int connect_result(int fd);

// Connects and waits at most the timeout. The socket is non-blocking.
Result<UniqueFd> connect_to(const Endpoint& endpoint, int timeout_ms);

// The numeric form of the endpoint's first address that accepts a connection: saves a client the
// look-up for every connection, and "localhost" may mean ::1 where the server has 127.0.0.1 only.
// Waits at most the timeout for each address. Unix sockets are tried too and returned as they are.
Result<Endpoint> reachable_address(const Endpoint& endpoint, int timeout_ms);

// Accepts one connection (non-blocking, close-on-exec, TCP_NODELAY on TCP); invalid when none waits
// or on any error (errno tells).
UniqueFd accept_from(int listener);

}  // namespace septet::os
