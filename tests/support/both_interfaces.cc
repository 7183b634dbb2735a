#include "support/both_interfaces.h"

#include <fmt/format.h>

#include "base/text.h"

namespace septet::test_support {

inference::Outcome<inference::InferResponse> read_reply(const HttpReply& reply) {
  inference::V2Reader reader;
  if (reply.status != 200) {
    return inference::internal_error(reader.read_error(reply.body));
  }
  auto bytes = std::make_shared<std::string>(reply.body);
  const std::size_t size = bytes->size();
  bytes->resize(size + inference::kBodyPadding);
  const auto length = reply.fields.find("inference-header-content-length");
  const std::size_t json_bytes =
      length == reply.fields.end() ? size : parse_uint(length->second).value();
  return reader.read_response({std::as_bytes(std::span(*bytes).first(size)), json_bytes, bytes});
}

void BothInterfaces::start(const serve::InferenceServerOptions& options,
                           const std::string& restriction) {
  serve::GrpcServerOptions with;
  serve::Restrictions for_http;
  if (!restriction.empty()) {
    ASSERT_TRUE(with.restrictions.add(restriction).ok());
    ASSERT_TRUE(for_http.add(restriction).ok());
  }
  server_.start(options, {}, std::move(for_http));
  with.endpoint.unix_path = server_.folder().path() + "/grpc.sock";
  auto started = serve::GrpcServer::start(server_.server(), with);
  ASSERT_TRUE(started.ok()) << started.error().text();
  grpc_ = std::move(*started);
  channel_ =
      grpc::CreateChannel("unix:" + with.endpoint.unix_path, grpc::InsecureChannelCredentials());
  stub_ = proto::GRPCInferenceService::NewStub(channel_);
  client_ = std::make_unique<HttpClient>(server_.connect());
}

void BothInterfaces::TearDown() {
  server_.backend().release();
  if (grpc_) {
    grpc_->shutdown(seconds(10));
  }
}

HttpReply BothInterfaces::post_infer(const inference::InferRequest& request,
                                     const inference::V2Message& message,
                                     const std::string& more_fields) {
  std::string body = message.json;
  for (const inference::Blob& piece : message.binary) {
    body += piece.text();
  }
  return client_->post(
      "/v2/models/" + request.model_name + "/infer", body,
      fmt::format("{}: {}\r\n{}", inference::kJsonLengthHeader, message.json.size(), more_fields));
}

HttpReply BothInterfaces::infer_over_http(const inference::InferRequest& request) {
  return post_infer(request, write_request(request));
}

grpc::Status BothInterfaces::infer_over_grpc(const proto::ModelInferRequest& request,
                                             proto::ModelInferResponse& response) {
  return call(&Stub::ModelInfer, request, response);
}

grpc::Status BothInterfaces::infer_over_grpc(const inference::InferRequest& request,
                                             proto::ModelInferResponse& response) {
  proto::ModelInferRequest message;
  inference::to_message(request, message);
  return infer_over_grpc(message, response);
}

grpc::Status BothInterfaces::call_by_name(const std::string& name) {
  grpc::GenericStub generic(channel_);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::Status status;
  grpc::ByteBuffer answer;
  const grpc::Slice nothing;  // a buffer without a slice would be no message at all
  const std::string service =
      name.find('/') == std::string::npos ? "/inference.GRPCInferenceService/" : "/";
  const auto call =
      generic.PrepareUnaryCall(&context, service + name, grpc::ByteBuffer(&nothing, 1), &queue);
  call->StartCall();
  call->Finish(&answer, &status, &queue);
  void* tag = nullptr;
  bool done = false;
  EXPECT_TRUE(queue.Next(&tag, &done));
  return status;
}

}  // namespace septet::test_support
