#include "serve/edge/http_transport.h"

#include <sys/socket.h>

#include "os/sealed_memory.h"

namespace septet::serve {

HttpTransport::HttpTransport(int fd, const std::shared_ptr<const inference::TlsIdentity>& identity)
    : fd_(fd) {
  if (identity) {
    tls_.emplace(fd, *identity);
  }
}

ssize_t HttpTransport::receive(void* to, std::size_t size) {
  return tls_ ? tls_->receive(to, size) : os::receive_with_descriptor(fd_, to, size, descriptor_);
}

ssize_t HttpTransport::send(std::span<const iovec> parts) {
  if (tls_) {
    return tls_->send(parts);
  }
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());  // the call reads them only
  message.msg_iovlen = parts.size();
  return ::sendmsg(fd_, &message, MSG_NOSIGNAL);
}

void HttpTransport::finish_sending() {
  if (tls_) {
    tls_->finish_sending();
  }
  ::shutdown(fd_, SHUT_WR);
}

}  // namespace septet::serve
