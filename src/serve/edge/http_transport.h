// HttpTransport: the bytes of one HTTP connection, plain or through TLS.
//
// TlsIdentity: the certificate and key that a server shows; shared, immutable, any thread may hold
// it. A transport belongs to one connection and its thread. Wraps OpenSSL, whose types stay in
// the .cc. Reading and writing behave as recv and sendmsg on a non-blocking socket do, errno
// included, so that a connection need not know which of the two it has.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "os/unique_fd.h"

namespace septet::serve {

class TlsIdentity {
 public:
  // PEM texts: the certificate, then those that lead to its root; the private key. kUsage when
  // either cannot be read or they do not belong together.
  static Result<std::shared_ptr<const TlsIdentity>> from_pem(const std::string& certificates,
                                                             const std::string& private_key);
  // The same from files; null when neither is named, kUsage when only one is.
  static Result<std::shared_ptr<const TlsIdentity>> from_files(const std::string& certificates,
                                                               const std::string& private_key);
  ~TlsIdentity();
  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;

 private:
  friend class HttpTransport;
  struct Context;

  TlsIdentity();

  std::unique_ptr<Context> context_;
};

class HttpTransport {
 public:
  // fd outlives the transport. identity: null for a plain connection, on which a descriptor may
  // come along (Unix sockets).
  HttpTransport(int fd, const std::shared_ptr<const TlsIdentity>& identity);
  ~HttpTransport();
  HttpTransport(const HttpTransport&) = delete;
  HttpTransport& operator=(const HttpTransport&) = delete;

  // Bytes received; 0 when the other side has ended; -1 with errno (EAGAIN: nothing there yet).
  ssize_t receive(void* to, std::size_t size);
  // Whether bytes wait in memory, which no event of the socket will tell about.
  bool has_received() const;
  // Bytes sent, maybe fewer than given; -1 with errno.
  ssize_t send(std::span<const iovec> parts);
  // The descriptor that came along with what was received, the last of several.
  os::UniqueFd take_descriptor() { return std::move(descriptor_); }
  // Says that nothing more will be sent.
  void finish_sending();

 private:
  struct Tls;

  int fd_;
  std::unique_ptr<Tls> tls_;
  os::UniqueFd descriptor_;
};

}  // namespace septet::serve
