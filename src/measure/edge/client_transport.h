// ClientTransport: the bytes of one client connection, plain or through TLS.
//
// TlsContext: what all connections of a client share: authorities, the client's own certificate;
// immutable, any thread may hold it. A transport belongs to one connection and its thread. Wraps
// OpenSSL, whose types stay in the .cc. Receiving and sending behave as recv and sendmsg on a
// non-blocking socket do, errno included, so that a client need not know which of the two it has.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "measure/tls_options.h"
#include "os/event_loop.h"

namespace septet::measure {

class TlsContext {
 public:
  enum class Protocol { kHttp1, kHttp2 };  // asked of the server; HTTP/2 must be agreed to

  // kUsage, naming the file, when one cannot be read or key and certificate do not belong together.
  static Result<std::shared_ptr<const TlsContext>> create(const TlsOptions& options,
                                                          Protocol protocol);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class ClientTransport;
  struct Parts;

  TlsContext();

  std::unique_ptr<Parts> parts_;
};

// How one server is talked to; without a context plainly.
struct TlsPeer {
  std::shared_ptr<const TlsContext> context;
  std::string host;  // a name or an address: what the server's certificate must be for
};

class ClientTransport {
 public:
  enum class Opening { kOpen, kUnderWay, kFailed };

  // fd is connected, is watched by the loop for EPOLLIN | EPOLLOUT, and outlives the transport.
  ClientTransport(os::EventLoop& loop, int fd, const TlsPeer& peer);
  ~ClientTransport();
  ClientTransport(const ClientTransport&) = delete;
  ClientTransport& operator=(const ClientTransport&) = delete;

  // One more step of the handshake; to be repeated when the loop says that the socket is ready. A
  // plain connection is open at once.
  Opening open();
  // Lets the loop watch the socket for these events.
  void wait_for(std::uint32_t events);
  // Bytes received; 0 when the other side has ended; -1 with errno (EAGAIN: nothing there yet).
  // With room for 16 KiB nothing stays behind that no event of the socket would tell about.
  ssize_t receive(void* to, std::size_t size);
  // Bytes sent, maybe fewer than given; -1 with errno. To be repeated with the same bytes.
  ssize_t send(std::span<const iovec> parts);
  // Why the latest call failed.
  std::string failure() const;

 private:
  struct Tls;

  // What the step of the handshake came to, as SSL_get_error says.
  Opening failed_step(int result);

  os::EventLoop& loop_;
  int fd_;
  bool waits_for_room_ = true;  // EPOLLOUT is watched
  std::unique_ptr<Tls> tls_;
};

}  // namespace septet::measure
