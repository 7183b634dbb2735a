// The gRPC interface against a real gRPC client.
#include "serve/edge/grpc_server.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include "inference/edge/grpc_codec.h"
#include "inference/edge/proto/grpc_service.grpc.pb.h"
#include "inference/edge/proto/health.grpc.pb.h"
#include "support/test_server.h"

namespace septet::serve {
namespace {

namespace proto = ::inference;
using test_support::TestServer;
using ::testing::HasSubstr;

class GrpcServerTest : public ::testing::Test {
 protected:
  void start(InferenceServerOptions options = {}, const std::string& restriction = {}) {
    server_.start(std::move(options));
    GrpcServerOptions grpc;
    grpc.endpoint.unix_path = server_.folder().path() + "/grpc.sock";
    if (!restriction.empty()) {
      ASSERT_TRUE(grpc.restrictions.add(restriction).ok());
    }
    auto started = GrpcServer::start(server_.server(), grpc);
    ASSERT_TRUE(started.ok()) << started.error().text();
    grpc_ = std::move(*started);
    channel_ =
        grpc::CreateChannel("unix:" + grpc.endpoint.unix_path, grpc::InsecureChannelCredentials());
    stub_ = proto::GRPCInferenceService::NewStub(channel_);
  }
  void TearDown() override {
    server_.backend().release();
    if (grpc_) {
      grpc_->shutdown(seconds(10));
    }
  }

  static proto::ModelInferRequest simple(const std::string& id = "1", std::int64_t batch = 1) {
    proto::ModelInferRequest request;
    request.set_model_name("simple");
    request.set_id(id);
    for (const char* name : {"INPUT0", "INPUT1"}) {
      auto& input = *request.add_inputs();
      input.set_name(name);
      input.set_datatype("INT32");
      input.add_shape(batch);
      input.add_shape(16);
      request.add_raw_input_contents(std::string(static_cast<std::size_t>(batch) * 64, '\1'));
    }
    return request;
  }

  grpc::Status infer(const proto::ModelInferRequest& request,
                     proto::ModelInferResponse* response = nullptr) {
    grpc::ClientContext context;
    proto::ModelInferResponse ignored;
    return stub_->ModelInfer(&context, request, response != nullptr ? response : &ignored);
  }

  TestServer server_;
  std::unique_ptr<GrpcServer> grpc_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<proto::GRPCInferenceService::Stub> stub_;
};

TEST_F(GrpcServerTest, DescribesServerAndModel) {
  server_.add_simple();
  start();
  grpc::ClientContext a;
  grpc::ClientContext b;
  grpc::ClientContext c;
  grpc::ClientContext d;
  proto::ServerReadyResponse ready;
  proto::ModelMetadataRequest metadata_request;
  metadata_request.set_name("simple");
  proto::ModelMetadataResponse metadata;
  proto::ModelConfigRequest config_request;
  config_request.set_name("simple");
  proto::ModelConfigResponse config;
  grpc::health::v1::HealthCheckResponse health;

  EXPECT_TRUE(stub_->ServerReady(&a, {}, &ready).ok());
  EXPECT_TRUE(stub_->ModelMetadata(&b, metadata_request, &metadata).ok());
  EXPECT_TRUE(stub_->ModelConfig(&c, config_request, &config).ok());
  EXPECT_TRUE(grpc::health::v1::Health::NewStub(channel_)->Check(&d, {}, &health).ok());

  EXPECT_TRUE(ready.ready());
  EXPECT_EQ(metadata.inputs(0).shape(1), 16);
  EXPECT_EQ(config.config().max_batch_size(), 8);
  EXPECT_EQ(health.status(), grpc::health::v1::HealthCheckResponse::SERVING);
}

TEST_F(GrpcServerTest, InfersWithRawAndWithTypedContents) {
  server_.add_simple();
  start();
  proto::ModelInferRequest typed = simple();
  typed.clear_raw_input_contents();
  for (auto& input : *typed.mutable_inputs()) {
    for (int i = 0; i < 16; ++i) {
      input.mutable_contents()->add_int_contents(0x01010101);
    }
  }
  proto::ModelInferResponse from_raw;
  proto::ModelInferResponse from_typed;

  EXPECT_TRUE(infer(simple(), &from_raw).ok());
  EXPECT_TRUE(infer(typed, &from_typed).ok());

  EXPECT_EQ(from_raw.raw_output_contents(0), std::string(64, '\2'));
  EXPECT_EQ(from_typed.raw_output_contents(0), from_raw.raw_output_contents(0));
  EXPECT_EQ(from_raw.id(), "1");
  EXPECT_EQ(from_raw.outputs(1).name(), "OUTPUT1");
}

TEST_F(GrpcServerTest, RefusesWithTheProtocolsStatus) {
  server_.add_simple();
  start();
  proto::ModelInferRequest unknown = simple();
  unknown.set_model_name("nope");
  proto::ModelInferRequest mixed = simple();
  mixed.mutable_inputs(0)->mutable_contents()->add_int_contents(1);
  proto::ModelInferRequest short_raw = simple();
  short_raw.mutable_raw_input_contents()->RemoveLast();
  proto::ModelInferRequest bad_parameter = simple();
  (*bad_parameter.mutable_parameters())["sequence_start"].set_string_param("yes");

  EXPECT_EQ(infer(unknown).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(infer(mixed).error_message(), HasSubstr("contents field must not be specified"));
  EXPECT_EQ(infer(short_raw).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(infer(bad_parameter).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(infer(simple("1", 9)).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(infer(simple()).ok());
}

TEST_F(GrpcServerTest, AStreamAnswersInOrderAndOutlivesErrors) {
  server_.add_simple();
  start();
  grpc::ClientContext context;
  auto stream = stub_->ModelStreamInfer(&context);

  stream->Write(simple("a"));
  stream->Write(simple("b", 9));
  stream->Write(simple("c"));
  stream->WritesDone();
  std::vector<std::string> ids;
  std::vector<bool> failed;
  proto::ModelStreamInferResponse response;
  while (stream->Read(&response)) {
    ids.push_back(response.infer_response().id());
    failed.push_back(!response.error_message().empty());
  }

  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_THAT(ids, ::testing::ElementsAre("a", "b", "c"));
  EXPECT_THAT(failed, ::testing::ElementsAre(false, true, false));
}

TEST_F(GrpcServerTest, AStreamWhoseClientGoesAwayEnds) {
  server_.add_copy("held", "TYPE_INT8", "", "hold");
  start();
  proto::ModelInferRequest request;
  request.set_model_name("held");
  auto& input = *request.add_inputs();
  input.set_name("IN");
  input.set_datatype("INT8");
  input.add_shape(1);
  request.add_raw_input_contents("x");
  {
    grpc::ClientContext context;
    auto stream = stub_->ModelStreamInfer(&context);
    stream->Write(request);
    server_.backend().await_held(1);
    context.TryCancel();
    stream->Finish();
  }
  server_.backend().release();

  grpc_->shutdown(seconds(10));  // returns once every call is done
  SUCCEED();
}

TEST_F(GrpcServerTest, CountsWhatHttpCounts) {
  server_.add_simple();
  start();
  infer(simple("1", 3));
  grpc::ClientContext context;
  proto::ModelStatisticsResponse statistics;

  EXPECT_TRUE(stub_->ModelStatistics(&context, {}, &statistics).ok());

  EXPECT_EQ(statistics.model_stats(0).inference_count(), 3U);
  EXPECT_EQ(statistics.model_stats(0).inference_stats().success().count(), 1U);
}

TEST_F(GrpcServerTest, RestrictedCallsNeedTheirHeader) {
  server_.add_simple();
  start({}, "inference:key=secret");
  grpc::ClientContext context;
  context.AddMetadata("triton-grpc-protocol-key", "secret");
  proto::ModelInferResponse response;

  EXPECT_EQ(infer(simple()).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(stub_->ModelInfer(&context, simple(), &response).ok());
}

TEST(GrpcCodec, ARequestComesThroughBothWays) {
  inference::InferRequest request{.model_name = "m", .model_version = "2", .id = "i"};
  request.sequence_id = std::uint64_t{7};
  request.sequence_start = true;
  request.inputs.push_back({.name = "X",
                            .datatype = inference::Datatype::kBytes,
                            .shape = {1},
                            .data = inference::own_text(std::string("\1\0\0\0a", 5))});
  request.outputs.push_back({.name = "Y", .classification = 3});
  proto::ModelInferRequest message;

  inference::to_message(request, message);
  const auto again = inference::from_message(message);

  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(std::get<std::uint64_t>(again->sequence_id), 7U);
  EXPECT_TRUE(again->sequence_start);
  EXPECT_EQ(again->inputs[0].data.text(), request.inputs[0].data.text());
  EXPECT_EQ(again->outputs[0].classification, 3U);
}

}  // namespace
}  // namespace septet::serve
