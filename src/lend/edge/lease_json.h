// Leases as JSON: in the ledger's file (version 1) and on the daemon's socket.
//
// Free functions; any thread. Instants are nanoseconds of the monotonic clock plus an offset that
// the caller chooses: 0 in the file, unix time minus monotonic time for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "lend/environment.h"
#include "lend/types.h"

namespace septet::lend {

using Json = nlohmann::ordered_json;

Json to_json(const LeaseRequest& request);
// kUsage names the field that is missing or wrong. The owner is not read: the socket knows it.
Result<LeaseRequest> request_from_json(const Json& json);

Json to_json(const Lease& lease, Duration offset);
Result<Lease> lease_from_json(const Json& json);

Json to_json(const LeaseSetting& setting);
Json to_json(const Partition& partition);

// The text as JSON; kUsage when it is none.
Result<Json> parse_json(const std::string& text);

}  // namespace septet::lend
