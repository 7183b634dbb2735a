// Replicas and clients that fail, lie or leave; limits that are reached.

#include <atomic>
#include <thread>

#include "balance/edge/proxy_fixture.h"

namespace septet::balance {
namespace {

TEST_F(ProxyTest, WithoutReplicasIsAliveButNotReadyAndSaysSo) {
  start();

  EXPECT_TRUE(ask("GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(ask("GET /v2/health/ready HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 400"));
  const std::string reply = ask(kInfer);
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 503")) << reply;
  EXPECT_NE(reply.find("Retry-After: 1\r\n"), std::string::npos);
  EXPECT_NE(reply.find("{\"error\":\"no replica is ready"), std::string::npos);
}

TEST_F(ProxyTest, AReplicaThatResetsMidRequestCostsNoRequest) {
  std::atomic<int> calls = 0;
  const auto sometimes_reset = [&calls](const FakeRequest&) {
    FakeAnswer answer{http_reply("{}")};
    if (++calls % 50 == 0) {
      answer.bytes = "HTTP/1.1 200 OK\r\nContent-Le";
      answer.then = FakeAnswer::Then::kReset;
    }
    return answer;
  };
  for (int i = 0; i < 3; ++i) {
    add_replica(sometimes_reset);
  }
  start();

  const test::ClosedLoopResult result =
      test::run_closed_loop({proxy_->endpoint(), 8, 3000, test::infer_request("m", 2000)});

  EXPECT_EQ(result.failed, 0U);
  EXPECT_EQ(result.answered, 3000U);
  EXPECT_GE(proxy_->stats().retries, 30U);
}

TEST_F(ProxyTest, ALargeReplyThatIsCutIsFetchedAgain) {
  const std::string body(700'000, 'y');
  std::atomic<int> calls = 0;
  const auto cut = [&](const FakeRequest&) {
    const std::string whole = http_reply(body);
    return ++calls == 1 ? FakeAnswer{whole.substr(0, 300'000), {}, FakeAnswer::Then::kClose}
                        : FakeAnswer{whole};
  };
  add_replica(cut);
  add_replica(cut);
  start();

  const std::string reply = ask(kInfer);

  EXPECT_EQ(reply.substr(reply.find("\r\n\r\n") + 4), body);
  EXPECT_EQ(calls, 2);
}

TEST_F(ProxyTest, GarbageFromAReplicaBecomesTheProtocolsError) {
  add_replica([](const FakeRequest&) { return FakeAnswer{"SSH-2.0-OpenSSH\r\n\r\n"}; });
  start();

  const std::string reply = ask(kInfer);

  EXPECT_TRUE(reply.starts_with("HTTP/1.1 502")) << reply;
  EXPECT_NE(reply.find("{\"error\":"), std::string::npos);
}

TEST_F(ProxyTest, AReplyWithMoreThanItAnnouncedIsCutThereAndTheConnectionGivenUp) {
  FakeReplica& replica =
      add_replica([](const FakeRequest&) { return FakeAnswer{http_reply("{}") + "trash"}; });
  start();
  RawClient client(proxy_->endpoint());
  for (int i = 0; i < 3; ++i) {
    client.send(kInfer);
    EXPECT_TRUE(client.reply().ends_with("\r\n\r\n{}"));
  }
  EXPECT_GE(replica.connections(), 3U);
}

TEST_F(ProxyTest, AReplicaThatIsSilentTimesOut) {
  add_replica([](const FakeRequest&) { return FakeAnswer{http_reply("{}"), seconds(100)}; });
  ProxyOptions options;
  options.request_timeout = milliseconds(300);
  start(options);

  const std::string reply = ask(kInfer);

  EXPECT_TRUE(reply.starts_with("HTTP/1.1 504")) << reply;
}

TEST_F(ProxyTest, RefusesABodyOverTheLimitAndClosesTheConnection) {
  add_replica(answer_ok);
  ProxyOptions options;
  options.max_body_bytes = 1000;
  start(options);

  RawClient client(proxy_->endpoint());
  client.send("POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n");
  const std::string reply = client.reply();

  EXPECT_TRUE(reply.starts_with("HTTP/1.1 400")) << reply;
  EXPECT_NE(reply.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(client.closed());
}

TEST_F(ProxyTest, AClientThatLeavesFreesItsPlaceInTheQueue) {
  add_replica([](const FakeRequest&) { return FakeAnswer{http_reply("{}"), milliseconds(50)}; });
  start();
  {
    std::vector<std::unique_ptr<RawClient>> leaving;
    for (int i = 0; i < 20; ++i) {
      leaving.push_back(std::make_unique<RawClient>(proxy_->endpoint()));
      leaving.back()->send(kInfer);
    }
    while (proxy_->stats().requests < 20) {
    }
  }

  EXPECT_TRUE(ask(kInfer).starts_with("HTTP/1.1 200"));
  EXPECT_LT(replicas_[0]->requests(), 10U);
}

TEST_F(ProxyTest, TheSetOfReplicasChangesUnderLoadWithoutALostRequest) {
  for (int i = 0; i < 4; ++i) {
    add_replica([](const FakeRequest&) { return FakeAnswer{http_reply("{}"), milliseconds(1)}; });
  }
  start();
  std::atomic<bool> done = false;
  std::uint64_t changes = 0;
  std::thread changer([&] {
    const std::vector<Upstream> all = upstreams();
    while (!done) {
      const auto skip = static_cast<std::ptrdiff_t>(changes++ % 4);
      std::vector<Upstream> some = all;
      some.erase(some.begin() + skip);
      EXPECT_TRUE(proxy_->set_upstreams(some).ok());
    }
  });

  const test::ClosedLoopResult result =
      test::run_closed_loop({proxy_->endpoint(), 8, 2000, test::infer_request("m", 100)});
  done = true;
  changer.join();

  EXPECT_EQ(result.failed, 0U);
  EXPECT_GT(changes, 5U);
}

TEST_F(ProxyTest, BodiesOverTheMemoryLimitWaitAndAreServed) {
  add_replica(answer_ok);
  ProxyOptions options;
  options.memory_bytes = 3ULL << 20U;
  start(options);

  const test::ClosedLoopResult result =
      test::run_closed_loop({proxy_->endpoint(), 8, 200, test::infer_request("m", 900'000)});

  EXPECT_EQ(result.failed, 0U);
}

}  // namespace
}  // namespace septet::balance
