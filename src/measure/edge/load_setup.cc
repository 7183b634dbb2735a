#include "measure/edge/load_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "inference/v2_codec.h"
#include "measure/edge/grpc_query.h"
#include "measure/edge/http_client.h"
#include "measure/edge/input_files.h"
#include "measure/edge/model_query.h"

namespace septet::measure {

namespace {

// The target with every name resolved to an address that answers.
Result<Target> resolve(Target target) {
  constexpr int kConnectTimeoutMs = 5000;
  for (os::Endpoint& endpoint : target.endpoints) {
    const Result<os::Endpoint> address = os::reachable_address(endpoint, kConnectTimeoutMs);
    if (!address.ok()) {
      return no_answer(endpoint, address.error().message, address.error().kind);
    }
    if (!endpoint.is_unix()) {
      target.host_names[address->text()] = endpoint.host;
    }
    endpoint = *address;
  }
  return target;
}

Result<InputData> make_data(const ModelDescription& model, const InputOptions& input,
                            const std::vector<std::string>& files) {
  if (!files.empty()) {
    return read_input_files(files, model, input);
  }
  Result<inference::InferRequest> request = build_request(model, input);
  if (!request.ok()) {
    return request.error();
  }
  InputData data;
  data.requests.emplace_back().push_back(*std::move(request));
  return data;
}

// The words of the options that do not depend on the data.
void finish_requests(RequestStreams& streams, const InputOptions& input) {
  for (std::vector<inference::InferRequest>& stream : streams) {
    for (inference::InferRequest& request : stream) {
      request.parameters = input.parameters;
      for (inference::RequestedOutput& output : request.outputs) {
        output.binary = input.output_format == TensorFormat::kBinary;
      }
    }
  }
}

// Whether every request can be written as JSON.
Result<Ok> check_json(const RequestStreams& streams) {
  for (const std::vector<inference::InferRequest>& stream : streams) {
    for (const inference::InferRequest& request : stream) {
      if (const auto message = inference::write_request_as_json(request); !message.ok()) {
        return make_error(ErrorKind::kUsage,
                          "the inputs cannot be JSON: " + message.error().message,
                          "leave --input-tensor-format json out");
      }
    }
  }
  return Ok{};
}

Result<ModelDescription> describe(const ServerAccess& server, bool grpc, const std::string& model,
                                  const std::string& version) {
  return grpc ? query_model_grpc(server, model, version) : query_model(server, model, version);
}

// To be called last: nothing else should fail once the servers were changed.
Result<Ok> tell_traces(const std::vector<ServerAccess>& servers, bool grpc,
                       const TraceRequest& request) {
  for (std::size_t i = 0; i < servers.size() && !request.empty(); ++i) {
    SEPTET_TRY(grpc ? set_trace_grpc(servers[i], request) : set_trace(servers[i], request));
  }
  return Ok{};
}

// Completes what is known of the model by what is known of its parts.
Result<Ok> describe_parts(const ServerAccess& server, bool grpc,
                          const std::vector<ModelPart>& called, ModelDescription& model) {
  std::vector<ModelPart>& parts = model.parts;
  parts.insert(parts.end(), called.begin(), called.end());
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  for (ModelPart& part : parts) {
    const Result<ModelDescription> described = describe(server, grpc, part.name, part.version);
    if (!described.ok()) {
      return described.error();
    }
    part.has_response_cache = described->has_response_cache;
    model.is_sequence_model = model.is_sequence_model || described->is_sequence_model;
  }
  return Ok{};
}

RequestFeed::Settings feed_settings(const Target& target, const ModelDescription& model,
                                    const InputOptions& input, const GeneratorOptions& options) {
  RequestFeed::Settings settings;
  for (const ServerAccess& server : accesses_of(target)) {
    settings.endpoints.push_back(server.named());
  }
  settings.grpc = target.protocol != Protocol::kHttp;
  settings.path =
      target.protocol == Protocol::kHttp
          ? model_path(target.model, target.version) + "/infer"
          : grpc_path(target.protocol == Protocol::kGrpc ? "ModelInfer" : "ModelStreamInfer");
  settings.stream = target.protocol == Protocol::kGrpcStream;
  settings.json_inputs = !settings.grpc && input.input_format == TensorFormat::kJson;
  settings.compression = options.grpc_compression;
  settings.headers = target.headers;
  settings.sequences = model.is_sequence_model;
  settings.sequence = options.sequence;
  settings.seed = options.seed;
  return settings;
}

TlsPeer peer_of(const Target& target, const os::Endpoint& endpoint) {
  const auto name = target.host_names.find(endpoint.text());
  return {target.tls, name == target.host_names.end() ? endpoint.host : name->second};
}

}  // namespace

std::vector<ServerAccess> accesses_of(const Target& target) {
  std::vector<ServerAccess> servers;
  for (const os::Endpoint& endpoint : target.endpoints) {
    servers.push_back({endpoint, target.headers, peer_of(target, endpoint)});
  }
  return servers;
}

ClientFactory client_factory(const Target& target, GrpcClient::CallStyle style) {
  if (target.protocol == Protocol::kHttp) {
    return [target](os::EventLoop& loop, const os::Endpoint& endpoint,
                    ExchangeClient::Listener& listener,
                    ExchangeClient::BodyUse body_use) -> std::unique_ptr<ExchangeClient> {
      return std::make_unique<HttpClient>(loop, endpoint, listener, body_use,
                                          peer_of(target, endpoint));
    };
  }
  return [style, target](os::EventLoop& loop, const os::Endpoint& endpoint,
                         ExchangeClient::Listener& listener,
                         ExchangeClient::BodyUse body_use) -> std::unique_ptr<ExchangeClient> {
    return std::make_unique<GrpcClient>(
        loop, endpoint, listener, body_use,
        GrpcClient::Settings{style, target.headers, peer_of(target, endpoint)});
  };
}

Result<LoadSetup> set_up_load(const Target& target, const InputOptions& input,
                              const GeneratorOptions& options) {
  if (target.endpoints.empty() || target.model.empty()) {
    return make_error(ErrorKind::kUsage, "no server or no model was named");
  }
  Result<Target> resolved = resolve(target);
  if (!resolved.ok()) {
    return resolved.error();
  }
  const std::vector<ServerAccess> servers = accesses_of(*resolved);
  const ServerAccess& first = servers.front();
  const bool grpc = target.protocol != Protocol::kHttp;
  Result<ModelDescription> model = describe(first, grpc, target.model, target.version);
  if (!model.ok()) {
    return model.error();
  }
  SEPTET_TRY(describe_parts(first, grpc, options.called_models, *model));
  Result<ServerDescription> server = grpc ? query_server_grpc(first) : query_server(first);
  if (!server.ok()) {
    return server.error();
  }
  Result<InputData> data = make_data(*model, input, options.input_files);
  if (!data.ok()) {
    return data.error();
  }
  finish_requests(data->requests, input);
  if (options.grpc_compression != MessageCompression::kNone) {
    // Said to every call: one whose message is not compressed says so in the message's prefix.
    resolved->headers.emplace_back("grpc-encoding", to_string(options.grpc_compression));
  }
  LoadSetup setup;
  if (options.metrics) {
    const Result<GpuReading> reading = read_gpu_metrics(*options.metrics);
    if (!reading.ok()) {
      return reading.error();
    }
    setup.description.missing_metrics = missing_gpu_metrics(*reading);
  }
  if (options.shared_memory) {
    Result<std::unique_ptr<SharedRegions>> regions = SharedRegions::create(
        data->requests, *model, {servers, grpc, options.output_shared_memory_bytes});
    if (!regions.ok()) {
      return regions.error();
    }
    setup.regions = *std::move(regions);
    data->expected.clear();  // the answers hold no outputs
  }
  RequestFeed::Settings feeding = feed_settings(*resolved, *model, input, options);
  if (feeding.json_inputs) {
    SEPTET_TRY(check_json(data->requests));  // what lies in shared memory needs no form there
  }
  SEPTET_TRY(tell_traces(servers, grpc, options.trace));
  setup.feed = std::make_unique<RequestFeed>(std::move(feeding), *std::move(data));
  setup.description.server = *std::move(server);
  setup.description.model = *std::move(model);
  setup.description.request_bytes = setup.feed->first_body_bytes();
  setup.target = *std::move(resolved);
  return setup;
}

}  // namespace septet::measure
