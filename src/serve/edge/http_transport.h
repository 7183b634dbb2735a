// HttpTransport: the bytes of one HTTP connection, plain or through TLS.
//
// A transport belongs to one connection and its thread. Reading and writing behave as recv and
// sendmsg on a non-blocking socket do, errno included, so that a connection need not know which of
// the two it has.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <memory>
#include <optional>
#include <span>

#include "inference/edge/tls_stream.h"
#include "os/unique_fd.h"

namespace septet::serve {

class HttpTransport {
 public:
  // fd outlives the transport. identity: null for a plain connection, on which a descriptor may
  // come along (Unix sockets).
  HttpTransport(int fd, const std::shared_ptr<const inference::TlsIdentity>& identity);
  HttpTransport(const HttpTransport&) = delete;
  HttpTransport& operator=(const HttpTransport&) = delete;

  // Bytes received; 0 when the other side has ended; -1 with errno (EAGAIN: nothing there yet).
  ssize_t receive(void* to, std::size_t size);
  // Whether bytes wait in memory, which no event of the socket will tell about.
  bool has_received() const { return tls_ && tls_->has_received(); }
  // Bytes sent, maybe fewer than given; -1 with errno.
  ssize_t send(std::span<const iovec> parts);
  // The descriptor that came along with what was received, the last of several.
  os::UniqueFd take_descriptor() { return std::move(descriptor_); }
  // Says that nothing more will be sent.
  void finish_sending();

 private:
  int fd_;
  std::optional<inference::TlsStream> tls_;
  os::UniqueFd descriptor_;
};

}  // namespace septet::serve
