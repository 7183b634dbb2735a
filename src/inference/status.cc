#include "inference/status.h"

namespace septet::inference {

int http_status(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kAlreadyExists:
    case StatusCode::kCancelled:
      return 400;
    case StatusCode::kForbidden:
      return 403;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kInternal:
      return 500;
    case StatusCode::kUnsupported:
      return 501;
    case StatusCode::kUnavailable:
      return 503;
  }
  return 500;
}

int grpc_status(StatusCode code) {
  switch (code) {
    case StatusCode::kCancelled:
      return 1;
    case StatusCode::kInvalidArgument:
      return 3;
    case StatusCode::kNotFound:
      return 5;
    case StatusCode::kAlreadyExists:
      return 6;
    case StatusCode::kUnsupported:
      return 12;
    case StatusCode::kInternal:
      return 13;
    case StatusCode::kForbidden:
    case StatusCode::kUnavailable:
      return 14;
  }
  return 13;
}

}  // namespace septet::inference
