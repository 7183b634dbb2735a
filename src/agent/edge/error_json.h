// Errors on the daemon's socket: the HTTP status of each kind, and the error as JSON and back.
//
// Free functions; any thread.
#pragma once

#include "base/result.h"
#include "lend/edge/lease_json.h"

namespace septet::agent {

unsigned http_status(ErrorKind kind);
// {"error": {"kind", "message", "hint"}}
lend::Json error_json(const Error& error);
// The error in an answer; one that says so when there is none in it.
Error error_from_json(const lend::Json& json);

}  // namespace septet::agent
