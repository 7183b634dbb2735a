// Sequences stay with one replica, over HTTP and gRPC, over real sockets.

#include <map>
#include <set>

#include "balance/edge/proxy_fixture.h"
#include "inference/edge/proto/grpc_service.pb.h"
#include "support/fake_grpc_replica.h"
#include "support/grpc_loop.h"

namespace septet::balance {
namespace {

enum class Step { kStart, kMiddle, kEnd };

std::string json_request(const std::string& id, Step step) {
  const std::string body =
      R"({"inputs":[{"name":"INPUT","shape":[1],"datatype":"INT32","data":[1]}],)"
      R"("parameters":{"sequence_id":)" +
      id + R"(,"sequence_start":)" + (step == Step::kStart ? "true" : "false") +
      R"(,"sequence_end":)" + (step == Step::kEnd ? "true" : "false") + "}}";
  return "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string framed(const ::inference::ModelInferRequest& request) {
  const std::string bytes = request.SerializeAsString();
  std::string message(5, '\0');
  message[3] = static_cast<char>(bytes.size() >> 8U);
  message[4] = static_cast<char>(bytes.size() & 0xFFU);
  return message + bytes;
}

std::string proto_request(std::int64_t id, Step step, bool as_text = false) {
  ::inference::ModelInferRequest request;
  request.set_model_name("m");
  auto& parameters = *request.mutable_parameters();
  if (as_text) {
    parameters["sequence_id"].set_string_param(std::to_string(id));
  } else {
    parameters["sequence_id"].set_int64_param(id);
  }
  parameters["sequence_start"].set_bool_param(step == Step::kStart);
  parameters["sequence_end"].set_bool_param(step == Step::kEnd);
  request.add_raw_input_contents("abcd");
  return framed(request);
}

class SequenceTest : public ProxyTest {
 protected:
  // Replicas that say in their reply which one they are.
  void start_http(int count) {
    for (int i = 0; i < count; ++i) {
      add_replica([i](const FakeRequest&) {
        return FakeAnswer{http_reply("replica " + std::to_string(i))};
      });
    }
    start();
    wait_until_up();
  }
  void start_grpc(int count) {
    std::vector<Upstream> all;
    for (int i = 0; i < count; ++i) {
      const std::string at = testing::TempDir() + "/septet_sequence_" + std::to_string(getpid()) +
                             "_" + std::to_string(i);
      grpc_.push_back(std::make_unique<test::FakeGrpcReplica>(
          os::Endpoint{"", 0, at}, [i](const test::FakeCall&) {
            return test::FakeCallAnswer{std::string(5, '\0') + static_cast<char>('0' + i)};
          }));
      add_replica(answer_ok);
      all.push_back({.name = "r" + std::to_string(i),
                     .endpoint = replicas_.back()->endpoint(),
                     .models = {},
                     .grpc = grpc_.back()->endpoint()});
    }
    ProxyOptions options;
    options.listen = {kAnyPort};
    proxy_ = *Proxy::start(options, all);
    wait_until_up();
  }
  void wait_until_up() {
    for (bool up = false; !up;) {
      const ProxyStats stats = proxy_->stats();
      up = std::all_of(stats.upstreams.begin(), stats.upstreams.end(),
                       [](const UpstreamStats& upstream) { return upstream.state == "up"; });
    }
  }
  // Which replica answered.
  char ask_http(const std::string& id, Step step) {
    const std::string reply = ask(json_request(id, step));
    const std::size_t at = reply.find("replica ");
    EXPECT_NE(at, std::string::npos) << reply;
    return at == std::string::npos ? '?' : reply[at + 8];
  }
  char ask_grpc(const std::string& message, const std::string& method = "ModelInfer") {
    const auto result = test::run_grpc_load({.target = proxy_->endpoint(),
                                             .path = "/inference.GRPCInferenceService/" + method,
                                             .message = message});
    EXPECT_EQ(result.failed, 0U) << result.last_message;
    return result.last_reply.size() < 6 ? '?' : result.last_reply[5];
  }

  std::vector<std::unique_ptr<test::FakeGrpcReplica>> grpc_;
};

TEST_F(SequenceTest, StaysWithOneReplicaUntilItsEnd) {
  start_http(3);
  std::map<std::string, char> places;
  const std::vector<std::string> ids = {"1", "2", "3", "\"1\"", "\"b\"", "6"};

  for (const std::string& id : ids) {
    places[id] = ask_http(id, Step::kStart);
  }
  for (int i = 0; i < 3; ++i) {
    for (const std::string& id : ids) {
      EXPECT_EQ(ask_http(id, Step::kMiddle), places[id]) << id;
    }
  }

  std::map<char, int> of_replica;
  for (const auto& [id, place] : places) {
    ++of_replica[place];
  }
  EXPECT_EQ(of_replica, (std::map<char, int>{{'0', 2}, {'1', 2}, {'2', 2}}));
  EXPECT_EQ(proxy_->stats().sequences, 6U);
  for (const std::string& id : ids) {
    EXPECT_EQ(ask_http(id, Step::kEnd), places[id]) << id;
  }
  EXPECT_EQ(proxy_->stats().sequences, 0U);
  EXPECT_EQ(proxy_->stats().upstreams.front().streams, 0U);
}

TEST_F(SequenceTest, ThatLosesItsReplicaHasToBeginAnew) {
  start_http(2);
  const int place = ask_http("7", Step::kStart) - '0';
  replicas_[static_cast<std::size_t>(place)].reset();  // its process is gone

  const std::string reply = ask(json_request("7", Step::kMiddle));

  EXPECT_NE(reply.find("503"), std::string::npos) << reply;
  EXPECT_NE(reply.find("has to begin anew"), std::string::npos) << reply;
  EXPECT_EQ(proxy_->stats().sequences, 0U);
  EXPECT_NE(ask_http("7", Step::kStart), '0' + place);
}

TEST_F(SequenceTest, CallsStayWithOneReplicaToo) {
  start_grpc(3);
  std::map<std::int64_t, char> places;

  for (const std::int64_t id : {1, 2, 3}) {
    places[id] = ask_grpc(proto_request(id, Step::kStart));
  }
  for (int i = 0; i < 3; ++i) {
    for (const std::int64_t id : {1, 2, 3}) {
      EXPECT_EQ(ask_grpc(proto_request(id, Step::kMiddle)), places[id]) << id;
    }
  }
  const char text = ask_grpc(proto_request(1, Step::kStart, true));

  EXPECT_EQ(std::set<char>({places[1], places[2], places[3]}).size(), 3U);
  EXPECT_EQ(ask_grpc(proto_request(1, Step::kMiddle, true)), text);
  EXPECT_EQ(proxy_->stats().sequences, 4U);
  for (const std::int64_t id : {1, 2, 3}) {
    EXPECT_EQ(ask_grpc(proto_request(id, Step::kEnd)), places[id]) << id;
  }
  EXPECT_EQ(proxy_->stats().sequences, 1U);
}

TEST_F(SequenceTest, AStreamGoesToTheReplicaOfItsFirstMessage) {
  start_grpc(3);
  for (const std::int64_t id : {1, 2, 3}) {
    const auto place = static_cast<std::size_t>(ask_grpc(proto_request(id, Step::kStart)) - '0');
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t before = grpc_[place]->calls();

      ask_grpc(proto_request(id, Step::kMiddle), "ModelStreamInfer");

      EXPECT_EQ(grpc_[place]->calls(), before + 1) << id;
    }
  }
}

TEST_F(SequenceTest, BothProtocolsShareASequence) {
  start_grpc(3);

  ask(json_request("5", Step::kStart));
  const char place = ask_grpc(proto_request(5, Step::kMiddle));

  EXPECT_EQ(replicas_[static_cast<std::size_t>(place - '0')]->requests(), 1U);
}

}  // namespace
}  // namespace septet::balance
