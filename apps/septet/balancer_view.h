// What a running `septet balance` says of itself, as `septet status --url` shows it.
#pragma once

#include "measure/edge/server_access.h"
#include "output.h"

namespace septet::app {

// Asks it for /septet/status. kPrecondition: nothing answers; kFailed: it is no balancer.
Result<Document> read_balancer(const measure::ServerAccess& balancer);

}  // namespace septet::app
