#include "base/result.h"

namespace septet {

const char* to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kFailed:
      return "failed";
    case ErrorKind::kUsage:
      return "usage";
    case ErrorKind::kPrecondition:
      return "precondition";
    case ErrorKind::kVerification:
      return "verification";
    case ErrorKind::kResetNeeded:
      return "reset_needed";
    case ErrorKind::kNotFound:
      return "not_found";
    case ErrorKind::kPermission:
      return "permission";
    case ErrorKind::kNoCapacity:
      return "no_capacity";
  }
  return "failed";
}

}  // namespace septet
