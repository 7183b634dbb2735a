// ServerAccess: how a v2 server is reached and what every request to it carries.
//
// A value type.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "measure/edge/client_transport.h"
#include "measure/level_result.h"
#include "os/endpoint.h"

namespace septet::measure {

using HeaderFields = std::vector<std::pair<std::string, std::string>>;

struct ServerAccess {
  os::Endpoint endpoint;
  HeaderFields headers{};  // HTTP headers or gRPC metadata
  TlsPeer tls{};           // without a context plain

  // The endpoint with the server's name instead of its address, if that is known.
  os::Endpoint named() const {
    os::Endpoint result = endpoint;
    if (!endpoint.is_unix() && !tls.host.empty()) {
      result.host = tls.host;
    }
    return result;
  }
};

// No connection to the server came about, and why.
Error no_answer(const os::Endpoint& endpoint, const std::string& why,
                ErrorKind kind = ErrorKind::kPrecondition);
// The server's words against the --trace- options.
Error trace_refused(const os::Endpoint& endpoint, const std::string& words);
// What an exchange with the server failed by: no_answer(), or kFailed with what to do.
Error failed_exchange(const ServerAccess& server, FailureKind kind, const std::string& why,
                      const std::string& hint);

}  // namespace septet::measure
