#include "measure/edge/server_access.h"

#include <fmt/format.h>

namespace septet::measure {

Error no_answer(const os::Endpoint& endpoint, const std::string& why, ErrorKind kind) {
  return make_error(kind, fmt::format("nothing answers at {}: {}", endpoint.text(), why),
                    "start a server there (septet serve) or name another with -u");
}

Error trace_refused(const os::Endpoint& endpoint, const std::string& words) {
  return make_error(ErrorKind::kFailed,
                    fmt::format("{} refused the trace settings: {}", endpoint.text(), words),
                    "leave the refused --trace- option out, or start the server with its tracing "
                    "(septet serve, tritonserver: --trace-config triton,file=PATH)");
}

Error failed_exchange(const ServerAccess& server, FailureKind kind, const std::string& why,
                      const std::string& hint) {
  if (kind == FailureKind::kConnect) {
    return no_answer(server.endpoint, why);
  }
  const bool by_tls =
      server.tls.context && (kind == FailureKind::kProtocol || kind == FailureKind::kReset);
  return make_error(ErrorKind::kFailed, why,
                    by_tls ? "check the files given with --ssl-... and that -u names a port that "
                             "speaks TLS"
                           : hint);
}

}  // namespace septet::measure
