// What a running `septet balance` says of itself, as `septet status --url` shows it.
#pragma once

#include "os/endpoint.h"
#include "output.h"

namespace septet::app {

// Asks it for /septet/status. kPrecondition: nothing answers; kFailed: it is no balancer.
Result<Document> read_balancer(const os::Endpoint& endpoint);

}  // namespace septet::app
