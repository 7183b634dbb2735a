#include "measure/edge/grpc_query.h"

#include <fmt/format.h>

#include <utility>

#include "inference/edge/grpc_codec.h"
#include "inference/edge/proto/grpc_service.pb.h"
#include "measure/edge/grpc_client.h"
#include "os/event_loop.h"

namespace septet::measure {

namespace {

class OneCall final : public ExchangeClient::Listener {
 public:
  OneCall(os::EventLoop& loop, const ServerAccess& server, std::string_view method)
      : loop_(loop), server_(server), method_(method) {}

  void on_answered(ExchangeClient& client, const ExchangeClient::Answer& answer) override {
    if (answer.status == 200) {
      outcome_ = std::string(answer.body);
    } else {
      outcome_ = make_error(answer.status == 404 ? ErrorKind::kNotFound : ErrorKind::kFailed,
                            fmt::format("{} answered {} with an error: {}",
                                        client.endpoint().text(), method_, answer.body));
    }
    loop_.stop();
  }
  void on_failed(ExchangeClient& /*client*/, FailureKind kind, const std::string& reason) override {
    outcome_ = failed_exchange(server_, kind, reason, "check that -u names a server's gRPC port");
    loop_.stop();
  }
  Result<std::string> take() { return std::move(outcome_); }

 private:
  os::EventLoop& loop_;
  const ServerAccess& server_;
  std::string method_;
  Result<std::string> outcome_ = std::string();
};

// Calls and parses into the response.
template <typename Request, typename Response>
Result<Ok> call(const ServerAccess& server, std::string_view method, const Request& request,
                Response& response) {
  const Result<std::string> bytes = grpc_call(server, method, request.SerializeAsString());
  if (!bytes.ok()) {
    return bytes.error();
  }
  if (!response.ParseFromString(*bytes)) {
    return make_error(ErrorKind::kFailed, fmt::format("{} gave no usable answer to {}",
                                                      server.endpoint.text(), method));
  }
  return Ok{};
}

template <typename Tensors>
std::vector<TensorDescription> tensors(const Tensors& metadata, bool batched) {
  std::vector<TensorDescription> result;
  for (const auto& element : metadata) {
    TensorDescription tensor;
    tensor.name = element.name();
    tensor.datatype = inference::datatype_from_wire(element.datatype());
    tensor.shape.assign(element.shape().begin(), element.shape().end());
    if (batched && !tensor.shape.empty()) {
      tensor.shape.erase(tensor.shape.begin());
    }
    result.push_back(std::move(tensor));
  }
  return result;
}

ServerDuration duration(const ::inference::StatisticDuration& value) {
  return {value.count(), value.ns()};
}

}  // namespace

std::string grpc_path(std::string_view method) {
  return fmt::format("/inference.GRPCInferenceService/{}", method);
}

Result<std::string> grpc_call(const ServerAccess& server, std::string_view method,
                              std::string_view request, Duration timeout) {
  const os::Endpoint& endpoint = server.endpoint;
  os::EventLoop loop;
  OneCall one(loop, server, method);
  GrpcClient client(loop, endpoint, one, ExchangeClient::BodyUse::kKeep,
                    {.metadata = server.headers, .tls = server.tls});
  const std::string path = grpc_path(method);
  const std::string message = framed_message(request);
  loop.call_after(timeout, [&] {
    if (client.busy()) {
      client.fail(FailureKind::kTimeout, fmt::format("{} did not answer {} within {} s",
                                                     endpoint.text(), method, to_seconds(timeout)));
    }
  });
  client.send({path, message, {}});
  loop.run();
  return one.take();
}

Result<ServerDescription> query_server_grpc(const ServerAccess& access) {
  ::inference::ServerMetadataResponse response;
  SEPTET_TRY(call(access, "ServerMetadata", ::inference::ServerMetadataRequest(), response));
  ServerDescription server;
  server.name = response.name();
  server.version = response.version();
  server.extensions.assign(response.extensions().begin(), response.extensions().end());
  return server;
}

Result<ModelDescription> query_model_grpc(const ServerAccess& server, const std::string& name,
                                          const std::string& version) {
  ::inference::ModelMetadataRequest metadata_request;
  metadata_request.set_name(name);
  metadata_request.set_version(version);
  ::inference::ModelMetadataResponse described;
  SEPTET_TRY(call(server, "ModelMetadata", metadata_request, described));
  ::inference::ModelConfigRequest config_request;
  config_request.set_name(name);
  config_request.set_version(version);
  ::inference::ModelConfigResponse configured;
  SEPTET_TRY(call(server, "ModelConfig", config_request, configured));

  const ::inference::ModelConfig& config = configured.config();
  ModelDescription model;
  model.name = name;
  model.version = version.empty() && described.versions_size() > 0
                      ? described.versions(described.versions_size() - 1)
                      : version;
  model.platform = described.platform();
  model.max_batch_size = config.max_batch_size();
  model.inputs = tensors(described.inputs(), model.max_batch_size > 0);
  model.outputs = tensors(described.outputs(), model.max_batch_size > 0);
  for (const auto& configured_input : config.input()) {
    for (TensorDescription& input : model.inputs) {
      if (input.name == configured_input.name()) {
        input.format = ::inference::ModelInput::Format_Name(configured_input.format());
        input.optional = configured_input.optional();
        input.is_shape_tensor = configured_input.is_shape_tensor();
      }
    }
  }
  for (const auto& step : config.ensemble_scheduling().step()) {
    model.parts.push_back(
        {step.model_name(), step.model_version() > 0 ? std::to_string(step.model_version()) : ""});
  }
  model.is_sequence_model = config.has_sequence_batching();
  model.is_decoupled = config.model_transaction_policy().decoupled();
  model.has_response_cache = config.response_cache().enable();
  if (model.inputs.empty()) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("{}: model '{}' has no inputs", server.endpoint.text(), name));
  }
  return model;
}

Result<Ok> register_shared_memory_grpc(const ServerAccess& server, const std::string& region,
                                       const std::string& key, std::uint64_t bytes) {
  ::inference::SystemSharedMemoryRegisterRequest request;
  request.set_name(region);
  request.set_key(key);
  request.set_byte_size(bytes);
  ::inference::SystemSharedMemoryRegisterResponse response;
  return call(server, "SystemSharedMemoryRegister", request, response);
}

Result<Ok> unregister_shared_memory_grpc(const ServerAccess& server, const std::string& region,
                                         Duration timeout) {
  ::inference::SystemSharedMemoryUnregisterRequest request;
  request.set_name(region);
  const Result<std::string> reply =
      grpc_call(server, "SystemSharedMemoryUnregister", request.SerializeAsString(), timeout);
  return reply.ok() ? Result<Ok>(Ok{}) : reply.error();
}

Result<Ok> set_trace_grpc(const ServerAccess& server, const TraceRequest& request) {
  ::inference::TraceSettingRequest message;
  for (const auto& [name, values] : request.settings()) {
    auto& setting = (*message.mutable_settings())[name];
    for (const std::string& value : values) {
      setting.add_value(value);
    }
  }
  ::inference::TraceSettingResponse response;
  const Result<Ok> done = call(server, "TraceSetting", message, response);
  return done.ok() || done.error().kind == ErrorKind::kPrecondition
             ? done
             : trace_refused(server.endpoint, done.error().message);
}

std::string statistics_request_grpc(const std::string& model, const std::string& version) {
  ::inference::ModelStatisticsRequest request;
  request.set_name(model);
  request.set_version(version);
  return framed_message(request.SerializeAsString());
}

Result<ServerStatistics> parse_statistics_grpc(std::string_view message, const std::string& model,
                                               const std::string& version) {
  ::inference::ModelStatisticsResponse response;
  if (!response.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    return make_error(ErrorKind::kFailed, "the server's statistics cannot be read");
  }
  ServerStatistics sum;
  bool found = false;
  for (const ::inference::ModelStatistics& element : response.model_stats()) {
    if (element.name() != model || (!version.empty() && element.version() != version)) {
      continue;
    }
    found = true;
    ServerStatistics statistics;
    statistics.inference_count = element.inference_count();
    statistics.execution_count = element.execution_count();
    const ::inference::InferStatistics& inner = element.inference_stats();
    statistics.success = duration(inner.success());
    statistics.queue = duration(inner.queue());
    statistics.compute_input = duration(inner.compute_input());
    statistics.compute_infer = duration(inner.compute_infer());
    statistics.compute_output = duration(inner.compute_output());
    statistics.cache_hit = duration(inner.cache_hit());
    statistics.cache_miss = duration(inner.cache_miss());
    sum.merge(statistics);
  }
  if (!found) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("the server's statistics do not name model '{}'", model));
  }
  return sum;
}

std::string infer_request_grpc(const inference::InferRequest& request,
                               MessageCompression compression) {
  ::inference::ModelInferRequest message;
  inference::to_message(request, message);
  return framed_message(message.SerializeAsString(), compression);
}

}  // namespace septet::measure
