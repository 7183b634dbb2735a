// Sends a number of infer requests to a v2 server over gRPC and hands on the answers; blocking.
//
// The counterpart of infer_exchange.h. Any thread.
#pragma once

#include "base/result.h"
#include "measure/edge/infer_exchange.h"

namespace septet::measure {

enum class GrpcCalls {
  kUnary,   // a call for each request
  kStream,  // one stream carries all requests; answers are matched by id
};

// As run_infer_exchange(); the exchange's headers are not sent (image_client ignores them
// likewise). With kStream, every request needs an id of its own.
Result<Ok> run_grpc_exchange(const InferExchange& exchange, GrpcCalls calls);

}  // namespace septet::measure
