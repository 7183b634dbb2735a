// TlsStream: the bytes of one connection through TLS, the server's side of it.
//
// TlsIdentity: the certificate and key that a server shows; shared, immutable, any thread may hold
// it. A stream belongs to one connection and its thread. Wraps OpenSSL, whose types stay in the
// .cc. Reading and writing behave as recv and sendmsg on a non-blocking socket do, errno included;
// writing raises SIGPIPE where the other side has gone, so the program ignores that.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace septet::inference {

class TlsIdentity {
 public:
  // Which protocols a client may choose by ALPN; kAny: it is not asked.
  enum class Protocols { kAny, kHttp1And2 };

  // PEM texts: the certificate, then those that lead to its root; the private key. kUsage when
  // either cannot be read or they do not belong together.
  static Result<std::shared_ptr<const TlsIdentity>> from_pem(const std::string& certificates,
                                                             const std::string& private_key,
                                                             Protocols protocols = Protocols::kAny);
  // The same from files; null when neither is named, kUsage when only one is.
  static Result<std::shared_ptr<const TlsIdentity>> from_files(
      const std::string& certificates, const std::string& private_key,
      Protocols protocols = Protocols::kAny);
  ~TlsIdentity();
  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;

 private:
  friend class TlsStream;
  struct Context;

  TlsIdentity();

  std::unique_ptr<Context> context_;
};

class TlsStream {
 public:
  // fd outlives the stream.
  TlsStream(int fd, const TlsIdentity& identity);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // Bytes received; 0 when the other side has ended; -1 with errno (EAGAIN: nothing there yet).
  ssize_t receive(void* to, std::size_t size);
  // Whether bytes wait in memory, which no event of the socket will tell about.
  bool has_received() const;
  // Bytes sent, maybe fewer than given; -1 with errno. After EAGAIN the same bytes have to come
  // first again, maybe at another place, with more behind them.
  ssize_t send(std::span<const iovec> parts);
  // Says that nothing more will be sent.
  void finish_sending();

 private:
  struct Connection;

  std::unique_ptr<Connection> connection_;
};

}  // namespace septet::inference
