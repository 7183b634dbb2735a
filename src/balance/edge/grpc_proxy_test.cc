// gRPC through the proxy: our fakes for what goes wrong, gRPC C++ as the server it has to please.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "balance/edge/proxy.h"
#include "balance/grpc_route.h"
#include "inference/edge/proto/grpc_service.pb.h"
#include "inference/edge/proto/health.pb.h"
#include "support/fake_grpc_replica.h"
#include "support/fake_replica.h"
#include "support/grpc_loop.h"
#include "support/raw_client.h"
#include "support/simulated_grpc_server.h"

namespace septet::balance {
namespace {

using test::FakeCall;
using test::FakeCallAnswer;
using test::FakeGrpcReplica;
using test::grpc_infer_message;
using test::GrpcLoad;
using test::GrpcLoadResult;

const std::string kService = "/inference.GRPCInferenceService/";

class GrpcProxyTest : public testing::Test {
 protected:
  // A replica whose HTTP side is up; its gRPC side does as the script says.
  FakeGrpcReplica& add_replica(FakeGrpcReplica::Script script) {
    const os::Endpoint grpc{"", 0, path("grpc")};
    grpc_.push_back(std::make_unique<FakeGrpcReplica>(grpc, std::move(script)));
    add_http(grpc_.back()->endpoint());
    return *grpc_.back();
  }
  void add_http(std::optional<os::Endpoint> grpc) {
    const std::string at = path("http");
    http_.push_back(std::make_unique<test::FakeReplica>(
        test::FakeReplica::Options{.listen = {"", 0, at}},
        [this](const test::FakeRequest& request) {
          if (request.target == "/v2/models/stats") {
            return test::FakeAnswer{test::http_reply(
                R"({"model_stats":[{"name":"m","version":"1","inference_count":2}]})")};
          }
          if (request.target == "/v2/repository/index") {
            return test::FakeAnswer{test::http_reply(R"([{"name":"m","state":"READY"}])")};
          }
          return test::FakeAnswer{test::http_reply("{}")};
        }));
    upstreams_.push_back({.name = "r" + std::to_string(upstreams_.size()),
                          .endpoint = http_.back()->endpoint(),
                          .models = {},
                          .grpc = std::move(grpc)});
  }
  std::string path(std::string_view what) {
    return testing::TempDir() + "/septet_grpc_proxy_" + std::to_string(getpid()) + "_" +
           std::to_string(upstreams_.size()) + "_" + std::string(what);
  }
  void start(ProxyOptions options = {}) {
    options.listen = {os::Endpoint{"127.0.0.1", 0, ""}};
    auto proxy = Proxy::start(std::move(options), upstreams_);
    ASSERT_TRUE(proxy.ok()) << proxy.error().text();
    proxy_ = std::move(*proxy);
    const auto is_up = [](const UpstreamStats& upstream) { return upstream.state == "up"; };
    for (bool up = upstreams_.empty(); !up;) {
      const ProxyStats stats = proxy_->stats();
      up = std::all_of(stats.upstreams.begin(), stats.upstreams.end(), is_up);
    }
  }
  GrpcLoadResult call(std::string_view method, std::string message) {
    return test::run_grpc_load({.target = proxy_->endpoint(),
                                .path = kService + std::string(method),
                                .message = std::move(message)});
  }
  GrpcLoadResult infer(std::size_t bytes = 100) {
    return call("ModelInfer", grpc_infer_message("m", bytes));
  }

  std::vector<std::unique_ptr<FakeGrpcReplica>> grpc_;
  std::vector<std::unique_ptr<test::FakeReplica>> http_;
  std::vector<Upstream> upstreams_;
  std::unique_ptr<Proxy> proxy_;
};

FakeCallAnswer answer_ok(const FakeCall& /*call*/) { return {framed_message("reply")}; }

template <typename Message>
Message parsed(const std::string& framed) {
  Message message;
  EXPECT_TRUE(message.ParseFromString(framed.substr(std::min(framed.size(), kGrpcPrefixBytes))));
  return message;
}

TEST_F(GrpcProxyTest, PassesACallOnAndTheReplyBack) {
  std::string fields;
  std::string message;
  add_replica([&](const FakeCall& call) {
    fields = call.fields;
    message = call.message;
    return FakeCallAnswer{framed_message("reply")};
  });
  start();

  const GrpcLoadResult result =
      test::run_grpc_load({.target = proxy_->endpoint(),
                           .message = grpc_infer_message("m", 300'000),
                           .fields = {{"x-request-id", "7"}, {"traceparent", "00-a-b-01"}}});

  EXPECT_EQ(result.statuses.begin()->first, "0");
  EXPECT_EQ(result.last_reply, framed_message("reply"));
  EXPECT_EQ(message, grpc_infer_message("m", 300'000));
  EXPECT_NE(fields.find("x-request-id: 7\n"), std::string::npos) << fields;
  EXPECT_NE(fields.find("traceparent: 00-a-b-01\n"), std::string::npos);
  EXPECT_NE(fields.find("te: trailers\n"), std::string::npos);
}

TEST_F(GrpcProxyTest, CallsOfOneConnectionGoToAllReplicas) {
  for (int i = 0; i < 3; ++i) {
    add_replica(answer_ok);
  }
  start();

  const GrpcLoadResult result = test::run_grpc_load({.target = proxy_->endpoint(),
                                                     .calls_each = 12,
                                                     .calls = 600,
                                                     .message = grpc_infer_message("m", 100)});

  EXPECT_EQ(result.failed, 0U);
  for (const auto& replica : grpc_) {
    // How many each is the machine's choice: the one whose thread runs takes most.
    EXPECT_GT(replica->calls(), 0U);
    EXPECT_EQ(replica->connections(), 1U);
  }
}

TEST_F(GrpcProxyTest, TheOfficialServerIsServedInFull) {
  const test::SimulatedGrpcServer server;
  add_http(server.endpoint());
  start();

  EXPECT_EQ(infer().failed, 0U);
  EXPECT_EQ(infer(602'112).failed, 0U);
  EXPECT_EQ(call("ServerMetadata", framed_message("")).failed, 0U);
  const GrpcLoadResult config = call("ModelConfig", framed_message(""));
  EXPECT_EQ(parsed<::inference::ModelConfigResponse>(config.last_reply).config().max_batch_size(),
            8);
  const GrpcLoadResult stream = call("ModelStreamInfer", grpc_infer_message("m", 100'000));
  EXPECT_EQ(stream.failed, 0U);
  EXPECT_EQ(server.requests(), 3U);
}

TEST_F(GrpcProxyTest, AnswersHealthItself) {
  add_replica(answer_ok);
  start();

  EXPECT_TRUE(
      parsed<::inference::ServerLiveResponse>(call("ServerLive", framed_message("")).last_reply)
          .live());
  EXPECT_TRUE(
      parsed<::inference::ServerReadyResponse>(call("ServerReady", framed_message("")).last_reply)
          .ready());
  const GrpcLoadResult check = test::run_grpc_load({.target = proxy_->endpoint(),
                                                    .path = "/grpc.health.v1.Health/Check",
                                                    .message = framed_message("")});
  EXPECT_EQ(parsed<::grpc::health::v1::HealthCheckResponse>(check.last_reply).status(),
            ::grpc::health::v1::HealthCheckResponse::SERVING);
  EXPECT_EQ(grpc_[0]->calls(), 0U);
}

TEST_F(GrpcProxyTest, SumsStatisticsAndUnitesTheIndex) {
  add_replica(answer_ok);
  add_replica(answer_ok);
  start();

  const auto statistics = parsed<::inference::ModelStatisticsResponse>(
      call("ModelStatistics", framed_message("")).last_reply);
  const auto index = parsed<::inference::RepositoryIndexResponse>(
      call("RepositoryIndex", framed_message("")).last_reply);

  ASSERT_EQ(statistics.model_stats_size(), 1);
  EXPECT_EQ(statistics.model_stats(0).inference_count(), 4U);
  ASSERT_EQ(index.models_size(), 1);
  EXPECT_EQ(index.models(0).state(), "READY");
}

TEST_F(GrpcProxyTest, ALoadReachesEveryReplicaAndOneErrorCounts) {
  add_replica(answer_ok);
  add_replica([](const FakeCall&) { return FakeCallAnswer{"", "5"}; });
  start();

  const GrpcLoadResult result = call("RepositoryModelLoad", framed_message(""));

  EXPECT_EQ(result.statuses.begin()->first, "5");
  EXPECT_EQ(grpc_[0]->calls(), 1U);
  EXPECT_EQ(grpc_[1]->calls(), 1U);
}

TEST_F(GrpcProxyTest, AReplicaThatBreaksOffCostsNoCall) {
  std::atomic<int> calls = 0;
  const auto sometimes = [&calls](const FakeCall&) {
    using Then = FakeCallAnswer::Then;
    const int number = ++calls;
    return FakeCallAnswer{framed_message("reply"), "0",
                          number % 60 == 0    ? Then::kClose
                          : number % 60 == 20 ? Then::kReset
                          : number % 60 == 40 ? Then::kRefuse
                                              : Then::kReply};
  };
  for (int i = 0; i < 3; ++i) {
    add_replica(sometimes);
  }
  start();

  const GrpcLoadResult result = test::run_grpc_load({.target = proxy_->endpoint(),
                                                     .connections = 2,
                                                     .calls_each = 8,
                                                     .calls = 3000,
                                                     .message = grpc_infer_message("m", 2000)});

  EXPECT_EQ(result.failed, 0U) << result.last_message;
  EXPECT_GT(proxy_->stats().retries, 30U);
}

TEST_F(GrpcProxyTest, WithoutReplicasIsUnavailableAndSaysSo) {
  start();

  const GrpcLoadResult result = infer();

  EXPECT_EQ(result.statuses.begin()->first, "14");
  EXPECT_EQ(result.last_message, "no replica behind this address has a gRPC address");
}

TEST_F(GrpcProxyTest, OnlyReplicasWithAGrpcAddressGetCalls) {
  add_http(std::nullopt);
  add_replica(answer_ok);
  start();

  const GrpcLoadResult result = test::run_grpc_load({.target = proxy_->endpoint(),
                                                     .calls_each = 8,
                                                     .calls = 200,
                                                     .message = grpc_infer_message("m", 100)});

  EXPECT_EQ(result.failed, 0U) << result.last_message;
  EXPECT_EQ(grpc_[0]->calls(), 200U);
}

TEST_F(GrpcProxyTest, AStreamStaysWithOneReplicaAndPassesThroughInBothDirections) {
  for (int i = 0; i < 3; ++i) {
    add_replica(answer_ok);
  }
  start();

  const GrpcLoadResult result = call("ModelStreamInfer", std::string(3'000'000, 'z'));

  EXPECT_EQ(result.statuses.begin()->first, "0");
  EXPECT_EQ(result.last_reply, std::string(3'000'000, 'z'));
  EXPECT_EQ(grpc_[0]->calls() + grpc_[1]->calls() + grpc_[2]->calls(), 1U);
}

TEST_F(GrpcProxyTest, AMessageOverTheLimitIsRefused) {
  add_replica(answer_ok);
  ProxyOptions options;
  options.max_body_bytes = 1000;
  start(options);

  const GrpcLoadResult result = infer(100'000);

  EXPECT_EQ(result.statuses.begin()->first, "8");
  EXPECT_EQ(grpc_[0]->calls(), 0U);
}

TEST_F(GrpcProxyTest, MessagesOverTheMemoryLimitWaitAndAreServed) {
  add_replica(answer_ok);
  ProxyOptions options;
  options.memory_bytes = 3ULL << 20U;
  start(options);

  const GrpcLoadResult result = test::run_grpc_load({.target = proxy_->endpoint(),
                                                     .connections = 2,
                                                     .calls_each = 4,
                                                     .calls = 200,
                                                     .message = grpc_infer_message("m", 900'000)});

  EXPECT_EQ(result.failed, 0U) << result.last_message;
}

TEST_F(GrpcProxyTest, AReplicaThatIsSilentIsTimedOutAndToldToStop) {
  FakeGrpcReplica& replica = add_replica([](const FakeCall&) {
    return FakeCallAnswer{"", "", FakeCallAnswer::Then::kSilence};
  });
  start();

  const GrpcLoadResult result = test::run_grpc_load({.target = proxy_->endpoint(),
                                                     .message = grpc_infer_message("m", 10),
                                                     .fields = {{"grpc-timeout", "200m"}}});

  EXPECT_EQ(result.statuses.begin()->first, "4") << result.last_message;
  while (replica.resets() == 0) {
  }
}

TEST_F(GrpcProxyTest, TheTimeLeftIsPassedOn) {
  std::string fields;
  add_replica([&](const FakeCall& call) {
    fields = call.fields;
    return answer_ok(call);
  });
  start();

  test::run_grpc_load({.target = proxy_->endpoint(),
                       .message = grpc_infer_message("m", 10),
                       .fields = {{"grpc-timeout", "40S"}}});

  const std::size_t at = fields.find("grpc-timeout: ");
  ASSERT_NE(at, std::string::npos);
  const auto left = parse_grpc_timeout(fields.substr(at + 14, fields.find('\n', at) - at - 14));
  ASSERT_TRUE(left);
  EXPECT_LE(*left, seconds(40));
  EXPECT_GT(*left, seconds(1));
}

TEST_F(GrpcProxyTest, ALargeReplyIsStreamedThrough) {
  const std::string large = framed_message(std::string(5'000'000, 'y'));
  add_replica([&](const FakeCall&) { return FakeCallAnswer{large}; });
  start();

  const GrpcLoadResult result = infer();

  EXPECT_EQ(result.failed, 0U) << result.last_message;
  EXPECT_EQ(result.last_reply, large);
}

TEST_F(GrpcProxyTest, TheSetOfReplicasChangesUnderLoadWithoutALostCall) {
  for (int i = 0; i < 4; ++i) {
    add_replica(answer_ok);
  }
  start();
  std::atomic<bool> done = false;
  std::uint64_t changes = 0;
  std::thread changer([&] {
    while (!done) {
      std::vector<Upstream> some = upstreams_;
      some.erase(some.begin() + static_cast<std::ptrdiff_t>(changes++ % 4));
      if (changes % 3 == 0) {
        some.front().grpc.reset();  // then some replicas speak no gRPC
      }
      EXPECT_TRUE(proxy_->set_upstreams(some).ok());
    }
  });

  const GrpcLoadResult result = test::run_grpc_load({.target = proxy_->endpoint(),
                                                     .connections = 2,
                                                     .calls_each = 8,
                                                     .calls = 4000,
                                                     .message = grpc_infer_message("m", 100)});
  done = true;
  changer.join();

  EXPECT_EQ(result.failed, 0U) << result.last_message;
  EXPECT_GT(changes, 5U);
}

TEST_F(GrpcProxyTest, BothProtocolsAreServedAtOneAddress) {
  add_replica(answer_ok);
  start();

  test::RawClient client(proxy_->endpoint());
  client.send("GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n");

  EXPECT_TRUE(client.reply().starts_with("HTTP/1.1 200"));
  EXPECT_EQ(infer().failed, 0U);
}

}  // namespace
}  // namespace septet::balance
