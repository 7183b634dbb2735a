// A client that goes away while its request waits: the request is not executed, and counted so.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <future>
#include <nlohmann/json.hpp>

#include "support/both_interfaces.h"

namespace septet::serve {
namespace {

using inference::InferRequest;
using nlohmann::json;
using test_support::BothInterfaces;
using test_support::HttpClient;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace proto = ::inference;

class CancellationTest : public BothInterfaces {
 protected:
  static constexpr const char* kBody =
      R"({"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[7]}]})";

  static std::string post(const std::string& model) {
    return fmt::format(
        "POST /v2/models/{}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", model,
        std::string(kBody).size(), kBody);
  }

  // The model's one instance is held by a first request, which is answered when it is released.
  void start_held(const std::string& model = "slow") {
    server_.add_copy("slow", "TYPE_INT32", "", "hold");
    start();
    first_ = std::make_unique<HttpClient>(server_.connect());
    first_->send(post(model));
    server_.backend().await_held(1);
  }

  ModelStatistics statistics(const std::string& model = "slow") {
    return (*server_.store().find(model, ""))->scheduler().statistics();
  }
  void await(const std::function<bool()>& reached) {
    while (!reached()) {
      std::this_thread::yield();
    }
  }
  void await_pending(std::uint64_t count) {
    await([&] { return statistics().pending == count; });
  }

  // The first request was executed, the other was not.
  void expect_only_the_first_ran() {
    server_.backend().release();
    EXPECT_EQ(first_->receive().status, 200U);
    EXPECT_EQ(client_->post("/v2/models/slow/infer", kBody).status, 200U);
    EXPECT_THAT(server_.backend().batches(), ElementsAre(1, 1));
    const ModelStatistics stats = statistics();
    EXPECT_EQ(stats.fail.count, 1U);
    EXPECT_EQ(stats.cancelled, 1U);
    EXPECT_EQ(stats.success.count, 2U);
    EXPECT_EQ(stats.execution_count, 2U);
    EXPECT_THAT(
        client_->get("/metrics").body,
        HasSubstr(R"(nv_inference_request_failure{model="slow",version="1",reason="CANCELED"} 1)"));
  }

  std::unique_ptr<HttpClient> first_;
};

TEST_F(CancellationTest, ARequestWhoseHttpClientClosedIsNotExecuted) {
  start_held();
  {
    HttpClient second = server_.connect();
    second.send(post("slow"));
    await_pending(1);
  }

  await_pending(0);

  expect_only_the_first_ran();
}

TEST_F(CancellationTest, AClientThatOnlyEndsItsSideIsToldSo) {
  start_held();
  HttpClient second = server_.connect();
  second.send(post("slow"));
  await_pending(1);

  second.finish_sending();
  const auto reply = second.receive();

  EXPECT_EQ(reply.status, 400U);
  EXPECT_THAT(reply.body, HasSubstr("Request cancelled"));
  expect_only_the_first_ran();
}

TEST_F(CancellationTest, ARequestThatIsBeingExecutedIsAnsweredToAClientThatEndedItsSide) {
  start_held();
  first_->finish_sending();
  // Longer than the grace: its end has shown when a second client's request is cancelled.
  HttpClient second = server_.connect();
  second.send(post("slow"));
  second.finish_sending();
  EXPECT_EQ(second.receive().status, 400U);

  expect_only_the_first_ran();
}

TEST_F(CancellationTest, ACallCancelledByItsGrpcClientIsNotExecuted) {
  start_held();
  grpc::ClientContext context;
  InferRequest request{.model_name = "slow", .id = "c"};
  request.inputs.push_back({.name = "IN",
                            .datatype = Datatype::kInt32,
                            .shape = {1},
                            .data = inference::own_text(std::string(4, '\1'))});
  proto::ModelInferRequest message;
  inference::to_message(request, message);
  proto::ModelInferResponse response;
  auto call = std::async(std::launch::async,
                         [&] { return stub_->ModelInfer(&context, message, &response); });
  await_pending(1);

  context.TryCancel();

  EXPECT_EQ(call.get().error_code(), grpc::StatusCode::CANCELLED);
  await_pending(0);
  expect_only_the_first_ran();
}

TEST_F(CancellationTest, AStreamThatIsCancelledTakesItsWaitingRequestsAlong) {
  start_held();
  grpc::ClientContext context;
  const auto stream = stub_->ModelStreamInfer(&context);
  proto::ModelInferRequest message;
  message.set_model_name("slow");
  auto& input = *message.add_inputs();
  input.set_name("IN");
  input.set_datatype("INT32");
  input.add_shape(1);
  message.add_raw_input_contents(std::string(4, '\1'));
  ASSERT_TRUE(stream->Write(message));
  await_pending(1);

  context.TryCancel();

  await_pending(0);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  expect_only_the_first_ran();
}

// The part that is executed runs to its end; the parts after it do not begin.
TEST_F(CancellationTest, AnEnsembleStopsBetweenItsSteps) {
  server_.add_copy("after", "TYPE_INT32");
  server_.folder().write("both/1/.keep", "");
  server_.folder().write("both/config.pbtxt", R"(
    platform: "ensemble"
    input { name: "IN" data_type: TYPE_INT32 dims: -1 }
    output { name: "OUT" data_type: TYPE_INT32 dims: -1 }
    ensemble_scheduling {
      step { model_name: "slow" input_map { key: "IN" value: "IN" }
             output_map { key: "OUT" value: "middle" } }
      step { model_name: "after" input_map { key: "IN" value: "middle" }
             output_map { key: "OUT" value: "OUT" } } })");
  start_held("both");

  first_.reset();
  // Over the same loop, after the end of the first connection has been seen.
  EXPECT_EQ(client_->get("/v2/health/live").status, 200U);
  server_.backend().release();
  await([&] { return statistics("both").fail.count == 1; });

  EXPECT_THAT(server_.backend().batches(), ElementsAre(1));
  EXPECT_EQ(statistics("both").cancelled, 1U);
  EXPECT_EQ(statistics("after").cancelled, 1U);
  EXPECT_EQ(statistics("slow").success.count, 1U);
}

// What follows in a sequence counts on the request that its client gave up.
TEST_F(CancellationTest, ARequestOfASequenceRunsAllTheSame) {
  server_.add_copy("steps", "TYPE_INT32", "max_batch_size: 1 sequence_batching { direct {} }",
                   "hold");
  start();
  const auto body = [](bool start) {
    return json{
        {"parameters", {{"sequence_id", 5}, {"sequence_start", start}}},
        {"inputs", {{{"name", "IN"}, {"datatype", "INT32"}, {"shape", {1, 1}}, {"data", {7}}}}}}
        .dump();
  };
  std::thread first([&] {
    HttpClient client = server_.connect();
    EXPECT_EQ(client.post("/v2/models/steps/infer", body(true)).status, 200U);
  });
  server_.backend().await_held(1);
  {
    HttpClient second = server_.connect();
    const std::string text = body(false);
    second.send(fmt::format(
        "POST /v2/models/steps/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}",
        text.size(), text));
    await([&] { return statistics("steps").pending == 1; });
  }
  EXPECT_EQ(client_->get("/v2/health/live").status, 200U);

  server_.backend().release();
  first.join();
  await([&] { return statistics("steps").success.count == 2; });

  EXPECT_EQ(statistics("steps").fail.count, 0U);
}

}  // namespace
}  // namespace septet::serve
