#include "balance/edge/proxy.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "support/closed_loop.h"
#include "support/fake_replica.h"
#include "support/raw_client.h"

namespace septet::balance {
namespace {

using test::FakeAnswer;
using test::FakeReplica;
using test::FakeRequest;
using test::http_reply;
using test::RawClient;

const os::Endpoint kAnyPort{"127.0.0.1", 0, ""};

// A proxy over fake replicas on Unix sockets.
class ProxyTest : public testing::Test {
 protected:
  FakeReplica& add_replica(FakeReplica::Script script, FakeReplica::Options options = {}) {
    options.listen.unix_path = testing::TempDir() + "/septet_proxy_" + std::to_string(getpid()) +
                               "_" + std::to_string(replicas_.size());
    // The proxy's own questions are answered here, so that a script sees the client's requests
    // only.
    const auto guarded = [script = std::move(script)](const FakeRequest& request) {
      if (request.target == "/v2/health/ready") {
        return FakeAnswer{http_reply("")};
      }
      return request.target.ends_with("/config") ? FakeAnswer{http_reply("{}")} : script(request);
    };
    replicas_.push_back(std::make_unique<FakeReplica>(options, guarded));
    return *replicas_.back();
  }
  std::vector<Upstream> upstreams() const {
    std::vector<Upstream> all;
    for (const auto& replica : replicas_) {
      all.push_back({replica->endpoint().text(), replica->endpoint(), {}});
    }
    return all;
  }
  void start(ProxyOptions options = {}) {
    options.listen = {kAnyPort};
    Result<std::unique_ptr<Proxy>> proxy = Proxy::start(std::move(options), upstreams());
    ASSERT_TRUE(proxy.ok()) << proxy.error().text();
    proxy_ = std::move(*proxy);
  }
  std::string ask(std::string_view request) {
    RawClient client(proxy_->endpoint());
    client.send(request);
    return client.reply();
  }

  std::vector<std::unique_ptr<FakeReplica>> replicas_;
  std::unique_ptr<Proxy> proxy_;
};

constexpr std::string_view kInfer =
    "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";

FakeAnswer answer_ok(const FakeRequest& /*request*/) { return {http_reply("{\"ok\":1}")}; }

TEST_F(ProxyTest, PassesARequestOnAndTheReplyBack) {
  std::string seen;
  add_replica(
      [&seen](const FakeRequest& request) {
        seen = request.head + request.body;
        return FakeAnswer{http_reply("{\"ok\":1}")};
      },
      {.keep_bodies = true});
  start();

  const std::string reply = ask(
      "POST /v2/models/m/infer HTTP/1.1\r\nHost: gpu\r\nInference-Header-Content-Length: 2\r\n"
      "Connection: keep-alive, X-Drop\r\nX-Drop: 1\r\nKeep-Alive: 5\r\nContent-Length: 4\r\n\r\n"
      "{}ab");

  EXPECT_EQ(reply,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n"
            "{\"ok\":1}");
  EXPECT_EQ(seen,
            "POST /v2/models/m/infer HTTP/1.1\r\nHost: gpu\r\n"
            "Inference-Header-Content-Length: 2\r\nContent-Length: 4\r\n\r\n{}ab");
}

TEST_F(ProxyTest, UnpacksAChunkedRequest) {
  std::string seen;
  add_replica(
      [&seen](const FakeRequest& request) {
        seen = request.body;
        return FakeAnswer{http_reply("{}")};
      },
      {.keep_bodies = true});
  start();

  ask("POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");

  EXPECT_EQ(seen, "abcde");
}

TEST_F(ProxyTest, AnswersHealthItself) {
  add_replica(answer_ok);
  start();
  ask(kInfer);  // waits for the replica

  EXPECT_TRUE(ask("GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(ask("GET /v2/health/ready HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 200"));
  EXPECT_EQ(replicas_[0]->requests(), 1U);
}

TEST_F(ProxyTest, WithoutReplicasIsAliveButNotReadyAndSaysSo) {
  start();

  EXPECT_TRUE(ask("GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(ask("GET /v2/health/ready HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 400"));
  const std::string reply = ask(kInfer);
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 503")) << reply;
  EXPECT_NE(reply.find("Retry-After: 1\r\n"), std::string::npos);
  EXPECT_NE(reply.find("{\"error\":\"no replica is ready"), std::string::npos);
}

TEST_F(ProxyTest, AsksEveryReplicaForStatistics) {
  const auto stats = [](const FakeRequest&) {
    return FakeAnswer{
        http_reply(R"({"model_stats":[{"name":"m","version":"1","inference_count":2}]})")};
  };
  add_replica(stats);
  add_replica(stats);
  start();
  while (proxy_->stats().upstreams[0].state != "up" || proxy_->stats().upstreams[1].state != "up") {
  }

  const std::string reply = ask("GET /v2/models/stats HTTP/1.1\r\nHost: a\r\n\r\n");

  EXPECT_NE(reply.find("\"inference_count\":4"), std::string::npos) << reply;
}

TEST_F(ProxyTest, StatisticsKeepWhatADepartedReplicaCounted) {
  const auto stats = [](const FakeRequest&) {
    return FakeAnswer{
        http_reply(R"({"model_stats":[{"name":"m","version":"1","inference_count":2}]})")};
  };
  add_replica(stats);
  add_replica(stats);
  start();
  while (proxy_->stats().upstreams[0].state != "up" || proxy_->stats().upstreams[1].state != "up") {
  }
  ASSERT_TRUE(proxy_->set_upstreams({upstreams().front()}).ok());
  while (proxy_->stats().upstreams.size() > 1) {
  }

  const std::string reply = ask("GET /v2/models/m/stats HTTP/1.1\r\nHost: a\r\n\r\n");

  EXPECT_NE(reply.find("\"inference_count\":4"), std::string::npos) << reply;
}

TEST_F(ProxyTest, ADeadlineThatCannotBeMadeIsRefusedAtOnce) {
  add_replica([](const FakeRequest&) { return FakeAnswer{http_reply("{}"), milliseconds(100)}; });
  start();
  ask(kInfer);  // now the model's speed is known, to the queue of its name from here on
  ask(kInfer);

  const std::string reply =
      ask("POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nSeptet-Timeout-Ms: 10\r\n"
          "Content-Length: 2\r\n\r\n{}");

  EXPECT_TRUE(reply.starts_with("HTTP/1.1 503")) << reply;
  EXPECT_NE(reply.find("Request timeout expired"), std::string::npos);
  EXPECT_EQ(replicas_[0]->requests(), 2U);
}

TEST_F(ProxyTest, AReplicaWithSeveralInstancesGetsWhatItsConfigAllows) {
  FakeReplica::Options concurrent;
  concurrent.one_at_a_time = false;
  concurrent.listen.unix_path = testing::TempDir() + "/septet_batch_" + std::to_string(getpid());
  replicas_.push_back(std::make_unique<FakeReplica>(concurrent, [](const FakeRequest& request) {
    if (request.target.ends_with("/config")) {
      return FakeAnswer{http_reply(R"({"name":"m","instance_group":[{"count":4}]})")};
    }
    const bool infer = request.method == "POST";
    return FakeAnswer{http_reply("{}"), infer ? milliseconds(20) : Duration::zero()};
  }));
  start();
  test::run_closed_loop({proxy_->endpoint(), 1, 3, test::infer_request("m", 10)});
  std::atomic<std::uint64_t> most = 0;
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) {
      most = std::max<std::uint64_t>(most, proxy_->stats().in_flight);
    }
  });

  test::run_closed_loop({proxy_->endpoint(), 8, 40, test::infer_request("m", 10)});
  done = true;
  watcher.join();

  EXPECT_GE(most, 4U);
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

TEST_F(ProxyTest, ALargeRequestArrivesWhole) {
  std::size_t seen = 0;
  add_replica([&seen](const FakeRequest& request) {
    seen = request.body_bytes;
    return FakeAnswer{http_reply("{}")};
  });
  start();

  const test::ClosedLoopResult result =
      test::run_closed_loop({proxy_->endpoint(), 4, 100, test::infer_request("m", 602'112)});

  EXPECT_EQ(result.failed, 0U);
  EXPECT_EQ(seen, 602'112U);
}

TEST_F(ProxyTest, StreamsAChunkedReply) {
  add_replica([](const FakeRequest&) {
    return FakeAnswer{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"};
  });
  start();

  const std::string reply = ask(kInfer);

  EXPECT_EQ(reply, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
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

TEST_F(ProxyTest, ServesPipelinedRequestsInOrder) {
  std::atomic<int> calls = 0;
  add_replica(
      [&calls](const FakeRequest&) { return FakeAnswer{http_reply(std::to_string(++calls))}; });
  start();
  RawClient client(proxy_->endpoint());

  client.send(std::string(kInfer) + std::string(kInfer) + std::string(kInfer));

  EXPECT_TRUE(client.reply().ends_with("\r\n\r\n1"));
  EXPECT_TRUE(client.reply().ends_with("\r\n\r\n2"));
  EXPECT_TRUE(client.reply().ends_with("\r\n\r\n3"));
}

TEST_F(ProxyTest, ARequestThatArrivesByteByByteIsServed) {
  add_replica(answer_ok);
  start();
  RawClient client(proxy_->endpoint());

  for (const char byte : kInfer) {
    client.send(std::string_view(&byte, 1));
  }

  EXPECT_TRUE(client.reply().starts_with("HTTP/1.1 200"));
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

TEST_F(ProxyTest, AnUpstreamMayNotBeNamedTwice) {
  add_replica(answer_ok);
  start();
  const Upstream one = upstreams().front();

  EXPECT_EQ(proxy_->set_upstreams({one, one}).error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace septet::balance
