// TlsFront: ends TLS in front of a plain server, for tests of clients.
//
// Owned by a test; threads of its own, one for each connection, from construction to destruction.
#pragma once

#include <memory>
#include <string>

#include "os/endpoint.h"
#include "support/certificates.h"

namespace septet::test {

struct TlsFrontOptions {
  Pem identity;
  std::string client_authority{};  // PEM; not empty: clients must show a certificate of it
  bool offers_http2 = true;
};

class TlsFront {
 public:
  TlsFront(const os::Endpoint& backend, const TlsFrontOptions& options);
  ~TlsFront();
  TlsFront(const TlsFront&) = delete;
  TlsFront& operator=(const TlsFront&) = delete;

  // Of 127.0.0.1, on a free port.
  os::Endpoint endpoint() const;
  // Of the latest connection that was agreed upon: the client certificate's subject, and the host
  // that the client asked for.
  std::string client_name() const;
  std::string asked_host() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace septet::test
