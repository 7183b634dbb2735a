// BothInterfaces: a test fixture with one server behind HTTP and gRPC, and calls that go to both.
//
// What HTTP and gRPC answer must mean the same; Answers holds both answers to one request.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "inference/edge/grpc_codec.h"
#include "inference/edge/proto/grpc_service.grpc.pb.h"
#include "inference/v2_codec.h"
#include "serve/edge/grpc_server.h"
#include "support/test_server.h"

namespace septet::test_support {

namespace proto = ::inference;

// A reply of the HTTP interface as what it means.
inference::Outcome<inference::InferResponse> read_reply(const HttpReply& reply);

class BothInterfaces : public ::testing::Test {
 protected:
  using Stub = proto::GRPCInferenceService::Stub;

  // The repository is written before. restriction: as of --restrict; empty = none.
  void start(const serve::InferenceServerOptions& options = {},
             const std::string& restriction = {});
  void TearDown() override;

  HttpReply post_infer(const inference::InferRequest& request, const inference::V2Message& message,
                       const std::string& more_fields = {});
  HttpReply infer_over_http(const inference::InferRequest& request);
  grpc::Status infer_over_grpc(const proto::ModelInferRequest& request,
                               proto::ModelInferResponse& response);
  grpc::Status infer_over_grpc(const inference::InferRequest& request,
                               proto::ModelInferResponse& response);
  // A call with a message that says nothing; what it answers is not looked at. The name alone is of
  // the inference service, SERVICE/NAME of any.
  grpc::Status call_by_name(const std::string& name);
  // One call of gRPC.
  template <typename Request, typename Response>
  grpc::Status call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response& response) {
    grpc::ClientContext context;
    return (stub_.get()->*method)(&context, request, &response);
  }

  TestServer server_;
  std::unique_ptr<HttpClient> client_;
  std::unique_ptr<serve::GrpcServer> grpc_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Stub> stub_;
};

}  // namespace septet::test_support
