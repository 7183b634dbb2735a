// GrpcServer: the v2 protocol's gRPC interface and the standard health service.
//
// Wraps gRPC C++ (callback interface): its threads call the InferenceServer. Owned by main, which
// keeps the InferenceServer alive until shutdown() has returned.
#pragma once

#include <memory>
#include <string>

#include "os/endpoint.h"
#include "serve/edge/inference_server.h"
#include "serve/restrictions.h"

namespace septet::serve {

struct GrpcServerOptions {
  os::Endpoint endpoint{};
  Restrictions restrictions{};
  std::string certificate{};  // PEM texts; both empty = no TLS
  std::string private_key{};
};

class GrpcServer {
 public:
  virtual ~GrpcServer() = default;
  // kPrecondition when the endpoint is in use.
  static Result<std::unique_ptr<GrpcServer>> start(InferenceServer& server,
                                                   const GrpcServerOptions& options);
  // The endpoint it really has.
  virtual const os::Endpoint& endpoint() const = 0;
  // Takes no more calls, ends those in flight after the time at the latest, then returns.
  virtual void shutdown(Duration longest) = 0;
};

}  // namespace septet::serve
