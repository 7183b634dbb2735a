#include <atomic>
#include <thread>

#include "balance/edge/proxy_fixture.h"

namespace septet::balance {
namespace {

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

TEST_F(ProxyTest, TheProxysOwnAnswerToHeadHasNoBody) {
  start();
  RawClient client(proxy_->endpoint());

  client.send("HEAD /v2/models/m HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

  const std::string reply = client.rest();
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 503")) << reply;
  EXPECT_NE(reply.find("Content-Length: "), std::string::npos);
  EXPECT_TRUE(reply.ends_with("\r\n\r\n")) << reply;
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

TEST_F(ProxyTest, AnUpstreamMayNotBeNamedTwice) {
  add_replica(answer_ok);
  start();
  const Upstream one = upstreams().front();

  EXPECT_EQ(proxy_->set_upstreams({one, one}).error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace septet::balance
