// Serves a gRPC ModelInfer call whose message lies in a slot (inference/slot_call.h); private to
// the HTTP frontend.
#pragma once

#include <memory>

#include "serve/edge/http_server.h"
#include "serve/edge/inference_server.h"

namespace septet::serve {

// Tensors are read where they lie; all else is copied before it is looked at.
void serve_slot_call(InferenceServer& server, const std::shared_ptr<HttpExchange>& exchange);

}  // namespace septet::serve
