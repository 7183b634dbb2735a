// What a load needs before its first request: addresses, the model's description, requests as
// bytes.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "measure/edge/grpc_client.h"
#include "measure/edge/load_generator.h"
#include "measure/edge/request_feed.h"
#include "measure/edge/server_access.h"
#include "measure/edge/shared_regions.h"

namespace septet::measure {

struct LoadSetup {
  Target target;  // its names resolved to addresses that answer
  TargetDescription description;
  std::unique_ptr<RequestFeed> feed;
  std::unique_ptr<SharedRegions> regions;  // null without shared memory
};

// How the target's servers are reached, in the order of its endpoints.
std::vector<ServerAccess> accesses_of(const Target& target);

// Makes the connections of a load over the target's protocol.
ClientFactory client_factory(const Target& target, GrpcClient::CallStyle style);

// Errors as LoadGenerator::open() says.
Result<LoadSetup> set_up_load(const Target& target, const InputOptions& input,
                              const GeneratorOptions& options);

}  // namespace septet::measure
