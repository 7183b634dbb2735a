// Requests that are sent to two replicas, over real sockets. The stalls end only when the test does
// (or after seconds), so a reply before that is the second copy's.

#include <atomic>
#include <fstream>
#include <sstream>

#include "balance/edge/proxy_fixture.h"
#include "support/fake_grpc_replica.h"
#include "support/grpc_loop.h"

namespace septet::balance {
namespace {

constexpr Duration kForEver = seconds(3600);
constexpr std::uint64_t kLearning = 160;  // enough to know the percentile

ProxyOptions hedging() {
  ProxyOptions options;
  options.hedge_percentile = 0.99;
  options.hedge_budget = 1;
  return options;
}

class HedgeTest : public ProxyTest {
 protected:
  // Two replicas; the next request of all that says so stalls.
  void start_hedging(Duration stall, ProxyOptions options = hedging()) {
    for (int i = 0; i < 2; ++i) {
      add_replica([this, stall](const FakeRequest& request) {
        const bool stalls =
            request.head.find("X-Stall") != std::string::npos && !stalled_.exchange(true);
        return FakeAnswer{http_reply(stalls ? "slow" : "quick"), stalls ? stall : Duration{}};
      });
    }
    start(std::move(options));
    const auto learned = test::run_closed_loop(
        {.target = proxy_->endpoint(), .requests = kLearning, .request = std::string(kInfer)});
    EXPECT_EQ(learned.failed, 0U);
  }
  std::string ask_slowly(std::string_view body = "{}") {
    stalled_ = false;
    return ask("POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nX-Stall: 1\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
  }
  std::uint64_t reached() const {
    std::uint64_t sum = 0;
    for (const auto& replica : replicas_) {
      sum += replica->requests();
    }
    return sum;
  }
  std::uint64_t completed() const {
    std::uint64_t sum = 0;
    for (const UpstreamStats& upstream : proxy_->stats().upstreams) {
      sum += upstream.completed;
    }
    return sum;
  }

  std::atomic<bool> stalled_ = true;
};

TEST_F(HedgeTest, ARequestThatTakesLongIsAnsweredByAnotherReplica) {
  const std::string log = testing::TempDir() + "/septet_hedge_" + std::to_string(getpid());
  ProxyOptions options = hedging();
  options.access_log = log;
  options.access_log_every = 1;
  start_hedging(kForEver, options);

  const std::string reply = ask_slowly();

  EXPECT_NE(reply.find("quick"), std::string::npos) << reply;
  const ProxyStats stats = proxy_->stats();
  EXPECT_GE(stats.hedges_won + stats.hedges_lost, 1U);  // the copy may get there first, and stall
  EXPECT_EQ(stats.requests, kLearning + 1);
  EXPECT_EQ(completed(), kLearning + 1);
  EXPECT_EQ(stats.retries, 0U);
  const std::string metrics = ask("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_NE(metrics.find("septet_balance_hedges_total{outcome=\"won\"} "), std::string::npos);
  proxy_.reset();
  std::stringstream lines;
  lines << std::ifstream(log).rdbuf();
  std::remove(log.c_str());
  EXPECT_NE(lines.str().find(R"("hedge":")"), std::string::npos) << lines.str();
}

TEST_F(HedgeTest, TheLosersReplyIsThrownAwayAndHarmsNothing) {
  start_hedging(seconds(2));

  const std::string reply = ask_slowly();
  while (proxy_->stats().in_flight > 0) {
  }
  const auto after = test::run_closed_loop(
      {.target = proxy_->endpoint(), .requests = 100, .request = std::string(kInfer)});

  EXPECT_NE(reply.find("quick"), std::string::npos) << reply;
  EXPECT_EQ(after.failed, 0U);
  EXPECT_EQ(completed(), kLearning + 101);
  for (const UpstreamStats& upstream : proxy_->stats().upstreams) {
    EXPECT_EQ(upstream.failed, 0U);
    EXPECT_EQ(upstream.in_flight, 0U);
  }
}

TEST_F(HedgeTest, WhatMayNotRunTwiceIsNotHedged) {
  start_hedging(milliseconds(300));
  // Bodies of about that size are known to be quick.
  static_cast<void>(test::run_closed_loop({.target = proxy_->endpoint(),
                                           .requests = kLearning,
                                           .request = test::infer_request("m", 68)}));
  const std::uint64_t before = reached();

  for (const std::string_view body :
       {R"({"parameters":{"sequence_id":7,"sequence_start":true},"inputs":[],"outputs":[]})",
        R"({"outputs":[{"name":"o","parameters":{"shared_memory_region":"r"}}]})"}) {
    EXPECT_NE(ask_slowly(body).find("slow"), std::string::npos) << body;
  }

  EXPECT_EQ(reached(), before + 2);
}

TEST_F(HedgeTest, NothingIsHedgedUnlessItIsAskedFor) {
  start_hedging(milliseconds(300), {});

  EXPECT_NE(ask_slowly().find("slow"), std::string::npos);

  EXPECT_EQ(reached(), kLearning + 1);
}

TEST_F(HedgeTest, AClientThatGoesTakesBothCopiesWithIt) {
  std::atomic<int> stalls = 0;
  for (int i = 0; i < 2; ++i) {
    add_replica([&](const FakeRequest& request) {
      const bool stall = request.head.find("X-Stall") != std::string::npos;
      stalls += stall ? 1 : 0;
      return FakeAnswer{http_reply("{}"), stall ? kForEver : Duration{}};
    });
  }
  start(hedging());
  static_cast<void>(test::run_closed_loop(
      {.target = proxy_->endpoint(), .requests = kLearning, .request = std::string(kInfer)}));
  {
    RawClient client(proxy_->endpoint());
    client.send(
        "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nX-Stall: 1\r\n"
        "Content-Length: 2\r\n\r\n{}");
    while (stalls < 2) {
    }
  }

  while (proxy_->stats().hedges_dropped == 0) {
  }

  EXPECT_EQ(proxy_->stats().connections, 0U);
}

TEST_F(HedgeTest, ACallThatTakesLongIsAnsweredByAnotherReplica) {
  std::atomic<bool> stalled = true;
  std::vector<std::unique_ptr<test::FakeGrpcReplica>> grpc;
  std::vector<Upstream> all;
  for (int i = 0; i < 2; ++i) {
    const std::string at = testing::TempDir() + "/septet_hedge_grpc_" + std::to_string(getpid()) +
                           "_" + std::to_string(i);
    grpc.push_back(std::make_unique<test::FakeGrpcReplica>(
        os::Endpoint{"", 0, at}, [&stalled](const test::FakeCall& call) {
          test::FakeCallAnswer answer{test::grpc_infer_message("reply", 9)};
          if (call.fields.find("x-stall") != std::string::npos && !stalled.exchange(true)) {
            answer.then = test::FakeCallAnswer::Then::kSilence;
          }
          return answer;
        }));
    add_replica(answer_ok);
    all.push_back({.name = "r" + std::to_string(i),
                   .endpoint = replicas_.back()->endpoint(),
                   .models = {},
                   .grpc = grpc.back()->endpoint()});
  }
  ProxyOptions options = hedging();
  options.listen = {kAnyPort};
  proxy_ = *Proxy::start(options, all);
  test::GrpcLoad load{.target = proxy_->endpoint(),
                      .calls = kLearning,
                      .message = test::grpc_infer_message("m", 100)};
  EXPECT_EQ(test::run_grpc_load(load).failed, 0U);
  load.calls = 1;
  load.fields = {{"x-stall", "1"}};
  stalled = false;

  const test::GrpcLoadResult result = test::run_grpc_load(load);

  EXPECT_EQ(result.failed, 0U);
  EXPECT_EQ(result.last_reply, test::grpc_infer_message("reply", 9));
  EXPECT_GE(proxy_->stats().hedges_won + proxy_->stats().hedges_lost, 1U);
  EXPECT_EQ(proxy_->stats().requests, kLearning + 1);
  EXPECT_EQ(completed(), kLearning + 1);
  load.fields.clear();
  load.calls = 50;
  EXPECT_EQ(test::run_grpc_load(load).failed, 0U);
}

}  // namespace
}  // namespace septet::balance
