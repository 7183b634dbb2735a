#include "serve/edge/slot_call.h"

#include <fmt/format.h>

#include "inference/edge/grpc_codec.h"
#include "inference/edge/proto/grpc_service.pb.h"
#include "inference/slot_call.h"
#include "os/clock.h"

namespace septet::serve {

namespace {

void respond_message(HttpExchange& exchange, int status, std::string body,
                     const std::shared_ptr<RequestTrace>& trace = nullptr) {
  HttpResponse response{.content_type = "application/octet-stream", .body = std::move(body)};
  response.fields.emplace_back(inference::kGrpcStatusField, fmt::to_string(status));
  if (trace) {
    trace->mark("GRPC_SEND_START", os::now());
    response.until_sent = RequestTrace::mark_when_gone(trace, "GRPC_SEND_END");
  }
  exchange.respond(std::move(response));
}

void respond_error(HttpExchange& exchange, const Status& status) {
  respond_message(exchange, inference::grpc_status(status.code), status.message);
}

Outcome<inference::InferRequest> read_call(const HttpExchange& exchange) {
  const auto split = inference::split_infer_message(exchange.body());
  ::inference::ModelInferRequest message;
  if (!split || !message.ParseFromString(split->rest) || message.raw_input_contents_size() > 0) {
    return inference::invalid_argument("the request message cannot be read");
  }
  std::vector<inference::Blob> tensors;
  for (const std::span<const std::byte> bytes : split->tensors) {
    tensors.push_back({bytes, exchange.body_owner()});
  }
  auto request = from_message(message, tensors);
  if (request.ok()) {
    for (inference::InputTensor& input : request->inputs) {
      if (input.datatype == inference::Datatype::kBytes) {
        // The lengths inside are checked, and have to stay as they were.
        input.data = inference::own_bytes({input.data.bytes.begin(), input.data.bytes.end()});
      }
    }
  }
  return request;
}

}  // namespace

void serve_slot_call(InferenceServer& server, const std::shared_ptr<HttpExchange>& exchange) {
  auto request = read_call(*exchange);
  if (!request.ok()) {
    respond_error(*exchange, request.error());
    return;
  }
  const std::shared_ptr<RequestTrace> trace = server.tracer().begin(request->model_name);
  if (trace) {
    trace->mark("GRPC_WAITREAD_START", exchange->received_from());
    trace->mark("GRPC_WAITREAD_END", exchange->received_until());
  }
  const auto cancellation = std::make_shared<Cancellation>();
  exchange->on_client_gone([cancellation] { cancellation->cancel(); });
  server.infer(std::move(*request),
               [exchange, trace](const Outcome<inference::InferResponse>& answered) {
                 if (!answered.ok()) {
                   respond_error(*exchange, answered.error());
                   return;
                 }
                 ::inference::ModelInferResponse message;
                 inference::to_message(*answered, message);
                 respond_message(*exchange, 0, message.SerializeAsString(), trace);
               },
               {cancellation, trace});
}

}  // namespace septet::serve
