// Route: what a request is about, read from its method and path only (never its body).
//
// A value with views into the target it was read from.
#pragma once

#include <string_view>

namespace septet::balance {

enum class RouteKind {
  kInfer,            // to one replica: infer, generate, and every path that is not known
  kLive,             // answered here
  kReady,            // answered here: a replica is ready
  kAnyReplica,       // the first replica that has it: metadata, config, model ready, settings read
  kStatistics,       // summed over the replicas
  kRepositoryIndex,  // the union
  kEveryReplica,     // has to reach all: load, unload, shared memory, settings written
  kMetrics,          // of the proxy and of all replicas
  kStatus,           // of the proxy alone, as JSON
};

struct Route {
  RouteKind kind = RouteKind::kInfer;
  std::string_view model;    // empty when none is named
  std::string_view version;  // empty when none is named
};

Route find_route(std::string_view method, std::string_view target);

}  // namespace septet::balance
