// Asks a v2 server about itself and its models over gRPC; the counterpart of model_query.h.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "inference/tensor.h"
#include "measure/edge/model_query.h"
#include "measure/level_result.h"
#include "measure/message_compression.h"
#include "measure/model_description.h"

namespace septet::measure {

// "/inference.GRPCInferenceService/" and the method.
std::string grpc_path(std::string_view method);

// One unary call: protobuf in, protobuf out. kPrecondition: nothing answers; kNotFound, kUsage or
// kFailed by the server's status.
Result<std::string> grpc_call(const ServerAccess& server, std::string_view method,
                              std::string_view request, Duration timeout = kQueryTimeout);

Result<ServerDescription> query_server_grpc(const ServerAccess& access);
Result<ModelDescription> query_model_grpc(const ServerAccess& server, const std::string& model,
                                          const std::string& version);

// Tells the server of a shared memory object, and lets it forget it.
Result<Ok> register_shared_memory_grpc(const ServerAccess& server, const std::string& region,
                                       const std::string& key, std::uint64_t bytes);
Result<Ok> unregister_shared_memory_grpc(const ServerAccess& server, const std::string& region,
                                         Duration timeout);

// TraceSetting of all models. kFailed with the server's words when it refuses.
Result<Ok> set_trace_grpc(const ServerAccess& server, const TraceRequest& request);

// The framed request for a model's counters, and the counters from the answer.
std::string statistics_request_grpc(const std::string& model, const std::string& version);
Result<ServerStatistics> parse_statistics_grpc(std::string_view message, const std::string& model,
                                               const std::string& version);

// The framed message of an inference request.
std::string infer_request_grpc(const inference::InferRequest& request,
                               MessageCompression compression = MessageCompression::kNone);

}  // namespace septet::measure
