#include "serve/edge/http_frontend.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "inference/json_writer.h"
#include "inference/slot_call.h"
#include "inference/slot_message.h"
#include "os/clock.h"
#include "serve/edge/body_compression.h"
#include "serve/edge/server_settings.h"
#include "serve/edge/slot_call.h"

namespace septet::serve {

using inference::HttpHead;
using inference::InferRequest;
using inference::JsonWriter;
using inference::kJsonLengthHeader;
using inference::V2Message;
using Kind = V2Path::Kind;

namespace {

void respond_json(HttpExchange& exchange, std::string json) {
  exchange.respond({.body = std::move(json)});
}

void respond_empty(HttpExchange& exchange, unsigned status) {
  exchange.respond({.status = status, .content_type = "text/plain"});
}

void respond_error(HttpExchange& exchange, unsigned status, std::string_view message) {
  exchange.respond({.status = status, .body = inference::error_json(message)});
}

void respond_status(HttpExchange& exchange, const Status& status) {
  respond_error(exchange, static_cast<unsigned>(http_status(status.code)), status.message);
}

void respond_call(HttpExchange& exchange, Outcome<std::string> answer) {
  if (!answer.ok()) {
    respond_status(exchange, answer.error());
  } else {
    answer->empty() ? respond_empty(exchange, 200) : respond_json(exchange, std::move(*answer));
  }
}

void respond_outcome(HttpExchange& exchange, const Outcome<Ok>& outcome) {
  outcome.ok() ? respond_empty(exchange, 200) : respond_status(exchange, outcome.error());
}

void respond_infer(HttpExchange& exchange, const Outcome<inference::InferResponse>& response,
                   BodyEncoding encoding, const std::shared_ptr<RequestTrace>& trace) {
  Outcome<V2Message> message =
      response.ok() ? write_response(*response) : Outcome<V2Message>(response.error());
  if (!message.ok()) {
    respond_status(exchange, message.error());
    return;
  }
  HttpResponse answer{.body = std::move(message->json), .pieces = std::move(message->binary)};
  if (!answer.pieces.empty()) {
    answer.content_type = "application/octet-stream";
    answer.fields.emplace_back(kJsonLengthHeader, fmt::to_string(answer.body.size()));
  }
  compress_response(answer, encoding);
  if (trace) {
    trace->mark("HTTP_SEND_START", os::now());
    answer.until_sent = RequestTrace::mark_when_gone(trace, "HTTP_SEND_END");
  }
  exchange.respond(std::move(answer));
}

void write_tensors(JsonWriter& json, const ModelConfig& config,
                   const std::vector<inference::TensorConfig>& tensors) {
  json.begin_array();
  for (const inference::TensorConfig& tensor : tensors) {
    json.begin_object().key("name").value(tensor.name);
    json.key("datatype").value(wire_name(tensor.datatype));
    json.key("shape").array(client_shape(config, tensor)).end_object();
  }
  json.end_array();
}

bool take_load_parameter(const std::string& name, std::string value, LoadOverride& override) {
  if (name == "config") {
    override.config_json = std::move(value);
    return true;
  }
  const auto bytes = name.starts_with(kFilePrefix) ? decode_base64(value) : std::nullopt;
  if (bytes) {
    override.files[name.substr(kFilePrefix.size())] = inference::Blob{*bytes, nullptr}.text();
  }
  return bytes.has_value();
}

std::string_view text_of(const HttpExchange& exchange) {
  return inference::Blob{exchange.body(), nullptr}.text();
}

}  // namespace

// A proxy asks here whether bodies may come in slots of its shared memory.
void HttpFrontend::respond_ready(HttpExchange& exchange) const {
  HttpResponse response{.status = server_.is_ready() ? 200U : 400U, .content_type = "text/plain"};
  if (exchange.head().find(inference::kSlotsField)) {
    response.fields.emplace_back(inference::kSlotsField, inference::kSlotsVersion);
  }
  if (takes_slot_calls_ && exchange.head().find(inference::kSlotCallsField)) {
    response.fields.emplace_back(inference::kSlotCallsField, inference::kSlotsVersion);
  }
  exchange.respond(std::move(response));
}

std::size_t HttpFrontend::body_lead(const HttpHead& head) {
  const auto length = head.find(kJsonLengthHeader);
  return length ? static_cast<std::size_t>(parse_uint(*length).value_or(0)) : 0;
}

void HttpFrontend::handle(std::shared_ptr<HttpExchange> exchange) {
  const HttpHead& head = exchange->head();
  if (server_.log().verbose_level >= 1) {
    server_.log().verbose(fmt::format("{} {}", head.method, head.target));
  }
  if (takes_slot_calls_ && exchange->body_in_slot() && head.method == "POST" &&
      head.target == inference::kSlotCallTarget) {
    serve_slot_call(server_, exchange);
    return;
  }
  const std::optional<V2Path> path = parse_v2_path(head.target);
  if (!path) {
    respond_error(*exchange, 404, "Not Found");
    return;
  }
  const std::string_view wanted = method_of(path->kind);
  const bool known = head.method == "GET" || head.method == "POST";
  if (wanted.empty() ? !known : head.method != wanted) {
    respond_error(*exchange, 405, "Method Not Allowed");
    return;
  }
  const auto missing = restrictions_.missing_header(
      path->kind, [&](const std::string& name) { return head.find(name); });
  if (missing) {
    respond_error(*exchange, 403,
                  fmt::format("This API is restricted, expecting header '{}'", *missing));
    return;
  }
  const auto encoding = head.find("Content-Encoding");
  if (exchange->body_in_slot() && (encoding || path->kind != Kind::kInfer)) {
    exchange->own_body();
  }
  if (encoding) {
    const auto parsed = parse_content_encoding(*encoding);
    if (!parsed) {
      respond_error(
          *exchange, 415,
          fmt::format("unknown Content-Encoding '{}'; gzip, deflate and identity are known",
                      *encoding));
      return;
    }
    if (*parsed != BodyEncoding::kIdentity) {
      auto plain = decompress_body(exchange->body(), exchange->max_body_bytes());
      if (!plain.ok()) {
        respond_status(*exchange, plain.error());
        return;
      }
      exchange->replace_body(std::move(*plain));
    }
  }
  answer(exchange, *path);
}

void HttpFrontend::answer(const Exchange& exchange, const V2Path& path) {
  switch (path.kind) {
    case Kind::kInfer:
      infer(exchange, path);
      return;
    case Kind::kLive:
      respond_empty(*exchange, server_.is_live() ? 200 : 400);
      return;
    case Kind::kReady:
      respond_ready(*exchange);
      return;
    case Kind::kModelReady:
      respond_empty(*exchange, server_.store().is_ready(path.model, path.version) ? 200 : 400);
      return;
    case Kind::kServerMetadata:
      server_metadata(exchange);
      return;
    case Kind::kModelMetadata:
      model_metadata(exchange, path);
      return;
    case Kind::kModelConfig:
      model_config(exchange, path);
      return;
    case Kind::kModelStatistics:
    case Kind::kAllStatistics:
      statistics(exchange, path);
      return;
    case Kind::kRepositoryIndex:
      repository_index(exchange);
      return;
    case Kind::kRepositoryLoad:
      repository_load(exchange, path);
      return;
    case Kind::kRepositoryUnload:
      repository_unload(exchange, path);
      return;
    case Kind::kSystemMemoryStatus:
    case Kind::kSystemMemoryRegister:
    case Kind::kSystemMemoryUnregister:
      respond_call(*exchange, system_memory_call(server_, path, text_of(*exchange)));
      return;
    case Kind::kCudaMemoryStatus:
    case Kind::kCudaMemoryRegister:
    case Kind::kCudaMemoryUnregister:
      respond_call(*exchange, cuda_memory_call(path));
      return;
    case Kind::kTraceSetting:
      respond_call(*exchange, trace_call(server_, path, text_of(*exchange)));
      return;
    case Kind::kLogging:
      respond_call(*exchange, logging_call(server_.log(), text_of(*exchange)));
      return;
    case Kind::kMetrics:
      exchange->respond({.content_type = "text/plain; version=0.0.4; charset=utf-8",
                         .body = metrics_text(server_, exchange->connection_count())});
      return;
  }
}

void HttpFrontend::infer(const Exchange& exchange, const V2Path& path) {
  auto request = read_infer(*exchange, path);
  if (!request.ok()) {
    respond_status(*exchange, request.error());
    return;
  }
  request->model_name = path.model;
  request->model_version = path.version;
  const BodyEncoding encoding =
      choose_encoding(exchange->head().find("Accept-Encoding").value_or(""));
  const std::shared_ptr<RequestTrace> trace = server_.tracer().begin(path.model);
  if (trace) {
    trace->mark("HTTP_RECV_START", exchange->received_from());
    trace->mark("HTTP_RECV_END", exchange->received_until());
  }
  const auto cancellation = std::make_shared<Cancellation>();
  exchange->on_client_gone([cancellation] { cancellation->cancel(); });
  server_.infer(std::move(*request),
                [exchange, encoding, trace](const Outcome<inference::InferResponse>& response) {
                  respond_infer(*exchange, response, encoding, trace);
                },
                {cancellation, trace});
}

Outcome<InferRequest> HttpFrontend::read_infer(const HttpExchange& exchange, const V2Path& path) {
  inference::V2Body body{exchange.body(), exchange.body().size(), exchange.body_owner()};
  if (exchange.body_in_slot()) {
    body.kind = inference::V2Body::Kind::kShared;
  }
  if (const auto length = exchange.head().find(kJsonLengthHeader)) {
    const auto json_bytes = parse_uint(*length);
    if (!json_bytes || *json_bytes > body.bytes.size()) {
      return inference::invalid_argument(
          fmt::format("{} '{}' is not a length within the body's {} bytes", kJsonLengthHeader,
                      *length, body.bytes.size()));
    }
    if (*json_bytes == 0) {
      return read_raw(exchange, path);
    }
    body.json_bytes = *json_bytes;
  }
  return reader_.read_request(body);
}

// The whole body is the model's one input (inference protocol, 1.2).
Outcome<InferRequest> HttpFrontend::read_raw(const HttpExchange& exchange, const V2Path& path) {
  const auto model = server_.store().find(path.model, path.version);
  if (!model.ok()) {
    return model.error();
  }
  return raw_request((*model)->config(), {exchange.body(), exchange.body_owner()});
}

void HttpFrontend::server_metadata(const Exchange& exchange) {
  JsonWriter json;
  json.begin_object().key("name").value(server_.options().name);
  json.key("version").value(server_.options().version);
  json.key("extensions").begin_array();
  for (const std::string& extension : server_.extensions()) {
    json.value(extension);
  }
  json.end_array().end_object();
  respond_json(*exchange, json.take());
}

void HttpFrontend::model_metadata(const Exchange& exchange, const V2Path& path) {
  const auto model = server_.store().find(path.model, path.version);
  if (!model.ok()) {
    respond_status(*exchange, model.error());
    return;
  }
  const ModelConfig& config = (*model)->config();
  JsonWriter json;
  json.begin_object().key("name").value(config.name);
  json.key("versions").begin_array();
  for (const std::string& version : server_.store().ready_versions(config.name)) {
    json.value(version);
  }
  json.end_array();
  json.key("platform").value(config.platform.empty() ? config.backend : config.platform);
  json.key("inputs");
  write_tensors(json, config, config.inputs);
  json.key("outputs");
  write_tensors(json, config, config.outputs);
  json.end_object();
  respond_json(*exchange, json.take());
}

void HttpFrontend::model_config(const Exchange& exchange, const V2Path& path) {
  const auto model = server_.store().find(path.model, path.version);
  if (!model.ok()) {
    respond_status(*exchange, model.error());
    return;
  }
  respond_json(*exchange, (*model)->document().to_json());
}

void HttpFrontend::statistics(const Exchange& exchange, const V2Path& path) {
  const auto models = server_.statistics_of(path.model, path.version);
  if (!models.ok()) {
    respond_status(*exchange, models.error());
    return;
  }
  JsonWriter json;
  json.begin_object().key("model_stats").begin_array();
  for (const ModelHandle& handle : *models) {
    write_statistics(json, handle->config().name, handle->version(),
                     handle->scheduler().statistics());
  }
  json.end_array().end_object();
  respond_json(*exchange, json.take());
}

void HttpFrontend::repository_index(const Exchange& exchange) {
  bool ready_only = false;
  if (!exchange->body().empty()) {
    const auto body = nlohmann::json::parse(text_of(*exchange), nullptr, false);
    if (!body.is_object() || (body.contains("ready") && !body["ready"].is_boolean())) {
      respond_error(*exchange, 400, "the index request must be {\"ready\": true or false}");
      return;
    }
    ready_only = body.value("ready", false);
  }
  JsonWriter json;
  json.begin_array();
  for (const IndexEntry& entry : server_.store().index(ready_only)) {
    json.begin_object().key("name").value(entry.name);
    if (!entry.version.empty()) {
      json.key("version").value(entry.version).key("state").value(entry.state);
      json.key("reason").value(entry.reason);
    }
    json.end_object();
  }
  json.end_array();
  respond_json(*exchange, json.take());
}

void HttpFrontend::repository_load(const Exchange& exchange, const V2Path& path) {
  LoadOverride override;
  if (!exchange->body().empty()) {
    const auto body = nlohmann::json::parse(text_of(*exchange), nullptr, false);
    const auto parameters =
        body.is_object() ? body.value("parameters", nlohmann::json::object()) : nlohmann::json();
    if (!parameters.is_object()) {
      respond_error(*exchange, 400, "the load request must be an object with 'parameters'");
      return;
    }
    for (const auto& [name, value] : parameters.items()) {
      if (!value.is_string() || !take_load_parameter(name, value.get<std::string>(), override)) {
        respond_error(*exchange, 400,
                      fmt::format("unsupported load parameter '{}'; 'config' takes JSON as a "
                                  "string, 'file:VERSION/NAME' base64",
                                  name));
        return;
      }
    }
  }
  server_.load(path.model, std::move(override),
               [exchange](const Outcome<Ok>& outcome) { respond_outcome(*exchange, outcome); });
}

void HttpFrontend::repository_unload(const Exchange& exchange, const V2Path& path) {
  server_.unload(path.model,
                 [exchange](const Outcome<Ok>& outcome) { respond_outcome(*exchange, outcome); });
}

}  // namespace septet::serve
