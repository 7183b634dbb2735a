#include "measure/edge/model_query.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "inference/http1.h"
#include "measure/edge/http_client.h"
#include "os/event_loop.h"

namespace septet::measure {

namespace {

using nlohmann::json;

// Ends the loop with the outcome of one exchange.
class OneExchange final : public ExchangeClient::Listener {
 public:
  OneExchange(os::EventLoop& loop, const ServerAccess& server) : loop_(loop), server_(server) {}

  void on_answered(ExchangeClient& /*client*/, const ExchangeClient::Answer& answer) override {
    outcome_ = HttpReply{answer.status, std::string(answer.body)};
    loop_.stop();
  }
  void on_failed(ExchangeClient& /*client*/, FailureKind kind, const std::string& reason) override {
    outcome_ = failed_exchange(server_, kind, reason, "check that -u names a v2 server");
    loop_.stop();
  }

  Result<HttpReply> take() { return std::move(outcome_); }

 private:
  os::EventLoop& loop_;
  const ServerAccess& server_;
  Result<HttpReply> outcome_ = HttpReply{};
};

Error malformed(const os::Endpoint& endpoint, const std::string& path, const std::string& what) {
  return make_error(
      ErrorKind::kFailed,
      fmt::format("{} gave no usable answer to GET {}: {}", endpoint.text(), path, what),
      "check that -u names a v2 server");
}

// A JSON object from the server, or the error that it gave.
Result<json> query_json(const ServerAccess& server, const std::string& path) {
  const os::Endpoint& endpoint = server.endpoint;
  const Result<HttpReply> reply = http_exchange(server, "GET", path, {});
  if (!reply.ok()) {
    return reply.error();
  }
  if (reply->status != 200) {
    const bool unknown = reply->status == 404 || reply->status == 400;
    return make_error(unknown ? ErrorKind::kNotFound : ErrorKind::kFailed,
                      fmt::format("{} answered GET {} with {}: {}", endpoint.text(), path,
                                  reply->status, error_text(reply->body)));
  }
  json object = json::parse(reply->body, nullptr, false);
  if (!object.is_object()) {
    return malformed(endpoint, path, "not a JSON object");
  }
  return object;
}

const json* member(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? nullptr : &*found;
}

std::string text_member(const json& object, const char* name) {
  const json* value = member(object, name);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::int64_t int_member(const json& object, const char* name) {
  const json* value = member(object, name);
  return value != nullptr && value->is_number_integer() ? value->get<std::int64_t>() : 0;
}

bool true_member(const json& object, const char* name) {
  const json* value = member(object, name);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

// Calls back for every object of an array member.
template <typename Callback>
void for_each_object(const json& object, const char* name, Callback callback) {
  const json* array = member(object, name);
  if (array == nullptr || !array->is_array()) {
    return;
  }
  for (const json& element : *array) {
    if (element.is_object()) {
      callback(element);
    }
  }
}

std::vector<TensorDescription> tensors(const json& metadata, const char* name, bool batched) {
  std::vector<TensorDescription> result;
  for_each_object(metadata, name, [&](const json& element) {
    TensorDescription tensor;
    tensor.name = text_member(element, "name");
    tensor.datatype = inference::datatype_from_wire(text_member(element, "datatype"));
    if (const json* shape = member(element, "shape"); shape != nullptr && shape->is_array()) {
      for (const json& size : *shape) {
        tensor.shape.push_back(size.is_number_integer() ? size.get<std::int64_t>() : -1);
      }
    }
    if (batched && !tensor.shape.empty()) {
      tensor.shape.erase(tensor.shape.begin());
    }
    result.push_back(std::move(tensor));
  });
  return result;
}

void apply_config(ModelDescription& model, const json& config) {
  for_each_object(config, "input", [&](const json& element) {
    for (TensorDescription& input : model.inputs) {
      if (input.name == text_member(element, "name")) {
        input.format = text_member(element, "format");
        input.optional = true_member(element, "optional");
        input.is_shape_tensor = true_member(element, "is_shape_tensor");
      }
    }
  });
  if (const json* ensemble = member(config, "ensemble_scheduling")) {
    for_each_object(*ensemble, "step", [&](const json& step) {
      const std::int64_t version = int_member(step, "model_version");
      model.parts.push_back(
          {text_member(step, "model_name"), version > 0 ? std::to_string(version) : ""});
    });
  }
  model.is_sequence_model = member(config, "sequence_batching") != nullptr;
  if (const json* policy = member(config, "model_transaction_policy")) {
    model.is_decoupled = true_member(*policy, "decoupled");
  }
  if (const json* cache = member(config, "response_cache")) {
    model.has_response_cache = true_member(*cache, "enable");
  }
}

std::uint64_t counter(const json& object, const char* name) {
  const json* value = member(object, name);
  return value != nullptr && value->is_number_unsigned() ? value->get<std::uint64_t>() : 0;
}

ServerDuration duration(const json& statistics, const char* name) {
  const json* value = member(statistics, name);
  return value == nullptr ? ServerDuration{}
                          : ServerDuration{counter(*value, "count"), counter(*value, "ns")};
}

ServerStatistics statistics_of(const json& element) {
  ServerStatistics result;
  result.inference_count = counter(element, "inference_count");
  result.execution_count = counter(element, "execution_count");
  if (const json* inner = member(element, "inference_stats")) {
    result.success = duration(*inner, "success");
    result.queue = duration(*inner, "queue");
    result.compute_input = duration(*inner, "compute_input");
    result.compute_infer = duration(*inner, "compute_infer");
    result.compute_output = duration(*inner, "compute_output");
    result.cache_hit = duration(*inner, "cache_hit");
    result.cache_miss = duration(*inner, "cache_miss");
  }
  return result;
}

}  // namespace

std::string request_head(std::string_view method, std::string_view path,
                         const os::Endpoint& endpoint, const HeaderFields& headers,
                         std::optional<std::size_t> content_length) {
  std::string head = fmt::format("{} {} HTTP/1.1\r\n", method, path);
  inference::append_field(head, "Host", endpoint.is_unix() ? "localhost" : endpoint.text());
  for (const auto& [name, value] : headers) {
    inference::append_field(head, name, value);
  }
  if (content_length) {
    inference::append_field(head, "Content-Length", std::uint64_t{*content_length});
  }
  return head + "\r\n";
}

Result<HttpReply> http_exchange(const ServerAccess& server, std::string_view method,
                                std::string_view path, std::string_view body, Duration timeout) {
  const os::Endpoint& endpoint = server.endpoint;
  os::EventLoop loop;
  OneExchange exchange(loop, server);
  HttpClient client(loop, endpoint, exchange, HttpClient::BodyUse::kKeep, server.tls);
  const std::optional<std::size_t> length =
      method == "GET" ? std::nullopt : std::optional(body.size());
  const std::string head = request_head(method, path, server.named(), server.headers, length);
  loop.call_after(timeout, [&] {
    if (client.busy()) {
      client.fail(FailureKind::kTimeout,
                  fmt::format("{} did not answer {} {} within {} s", endpoint.text(), method, path,
                              to_seconds(timeout)));
    }
  });
  client.send({head, body, {}});
  loop.run();
  return exchange.take();
}

std::string model_path(const std::string& model, const std::string& version) {
  return "/v2/models/" + model + (version.empty() ? "" : "/versions/" + version);
}

Result<ServerDescription> query_server(const ServerAccess& access) {
  const Result<json> object = query_json(access, "/v2");
  if (!object.ok()) {
    return object.error();
  }
  ServerDescription server;
  server.name = text_member(*object, "name");
  server.version = text_member(*object, "version");
  if (const json* extensions = member(*object, "extensions");
      extensions && extensions->is_array()) {
    for (const json& extension : *extensions) {
      if (extension.is_string()) {
        server.extensions.push_back(extension.get<std::string>());
      }
    }
  }
  return server;
}

Result<ModelDescription> query_model(const ServerAccess& server, const std::string& name,
                                     const std::string& version) {
  const std::string path = model_path(name, version);
  const Result<json> metadata = query_json(server, path);
  if (!metadata.ok()) {
    return metadata.error();
  }
  const Result<json> config = query_json(server, path + "/config");
  if (!config.ok()) {
    return config.error();
  }
  ModelDescription model;
  model.name = name;
  model.version = version;
  model.platform = text_member(*metadata, "platform");
  model.max_batch_size = int_member(*config, "max_batch_size");
  const bool batched = model.max_batch_size > 0;
  model.inputs = tensors(*metadata, "inputs", batched);
  model.outputs = tensors(*metadata, "outputs", batched);
  if (model.inputs.empty()) {
    return malformed(server.endpoint, path, "the model has no inputs");
  }
  if (const json* versions = member(*metadata, "versions");
      version.empty() && versions != nullptr && versions->is_array() && !versions->empty() &&
      versions->back().is_string()) {
    model.version = versions->back().get<std::string>();
  }
  apply_config(model, *config);
  return model;
}

Result<Ok> set_trace(const ServerAccess& server, const TraceRequest& request) {
  const Result<HttpReply> reply =
      http_exchange(server, "POST", "/v2/trace/setting", trace_setting_json(request));
  if (!reply.ok()) {
    return reply.error();
  }
  return reply->status == 200 ? Result<Ok>(Ok{})
                              : trace_refused(server.endpoint, error_text(reply->body));
}

Result<ServerStatistics> parse_statistics(std::string_view body, const std::string& model,
                                          const std::string& version) {
  const json object = json::parse(body, nullptr, false);
  ServerStatistics sum;
  bool found = false;
  for_each_object(object, "model_stats", [&](const json& element) {
    if (text_member(element, "name") == model &&
        (version.empty() || text_member(element, "version") == version)) {
      sum.merge(statistics_of(element));
      found = true;
    }
  });
  if (!found) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("the server's statistics do not name model '{}'", model));
  }
  return sum;
}

std::string error_text(std::string_view body) {
  const json object = json::parse(body, nullptr, false);
  std::string text = text_member(object, "error");
  if (!text.empty()) {
    return text;
  }
  constexpr std::size_t kShown = 120;
  return body.empty() ? "no explanation" : fmt::format("'{}'", body.substr(0, kShown));
}

}  // namespace septet::measure
