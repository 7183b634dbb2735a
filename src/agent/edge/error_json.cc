#include "agent/edge/error_json.h"

namespace septet::agent {

using lend::Json;

unsigned http_status(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return 400;
    case ErrorKind::kPermission:
      return 403;
    case ErrorKind::kNotFound:
      return 404;
    case ErrorKind::kNoCapacity:
      return 409;
    case ErrorKind::kPrecondition:
      return 412;
    case ErrorKind::kFailed:
    case ErrorKind::kVerification:
    case ErrorKind::kResetNeeded:
      return 500;
  }
  return 500;
}

Json error_json(const Error& error) {
  return {{"error",
           {{"kind", to_string(error.kind)}, {"message", error.message}, {"hint", error.hint}}}};
}

Error error_from_json(const Json& json) {
  Error error = make_error(ErrorKind::kFailed, "the daemon refused without saying why");
  if (!json.is_object() || !json.contains("error") || !json["error"].is_object()) {
    return error;
  }
  const Json& fields = json["error"];
  error.message = fields.value("message", error.message);
  error.hint = fields.value("hint", std::string());
  const std::string kind = fields.value("kind", std::string());
  for (const ErrorKind each :
       {ErrorKind::kFailed, ErrorKind::kUsage, ErrorKind::kPrecondition, ErrorKind::kVerification,
        ErrorKind::kResetNeeded, ErrorKind::kNotFound, ErrorKind::kPermission,
        ErrorKind::kNoCapacity}) {
    if (kind == to_string(each)) {
      error.kind = each;
    }
  }
  return error;
}

}  // namespace septet::agent
