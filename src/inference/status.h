// Status: an error of the inference protocol: Triton's code and the text the client reads.
//
// A value type. Outcome<T> is the Result of everything a client's request can make fail; the HTTP
// and gRPC numbers are those of facts about the protocol: Triton's main branch, table 1.7.
#pragma once

#include <string>

#include "base/result.h"

namespace septet::inference {

enum class StatusCode {
  kInvalidArgument,  // the client's request is wrong
  kNotFound,         // unknown model, version or region
  kUnavailable,      // known, but not ready now: loading, queue full, timed out
  kUnsupported,      // understood and not offered
  kAlreadyExists,
  kCancelled,
  kForbidden,  // a restricted endpoint without its header
  kInternal,
};

struct Status {
  StatusCode code = StatusCode::kInternal;
  std::string message;

  bool operator==(const Status&) const = default;
};

template <typename T>
using Outcome = Result<T, Status>;

// The HTTP status line's number: 400, 403, 404, 500, 501 or 503.
int http_status(StatusCode code);
// The number of grpc::StatusCode.
int grpc_status(StatusCode code);

inline Status invalid_argument(std::string message) {
  return Status{StatusCode::kInvalidArgument, std::move(message)};
}
inline Status not_found(std::string message) {
  return Status{StatusCode::kNotFound, std::move(message)};
}
inline Status unavailable(std::string message) {
  return Status{StatusCode::kUnavailable, std::move(message)};
}
inline Status unsupported(std::string message) {
  return Status{StatusCode::kUnsupported, std::move(message)};
}
inline Status internal_error(std::string message) {
  return Status{StatusCode::kInternal, std::move(message)};
}

}  // namespace septet::inference
