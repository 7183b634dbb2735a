// Ordinary requests over HTTP/2: served like the same request over HTTP/1.1.

#include <atomic>

#include "balance/edge/proxy_fixture.h"
#include "support/grpc_loop.h"
#include "support/http2_client.h"

namespace septet::balance {
namespace {

using test::Http2Client;

class Http2ProxyTest : public ProxyTest {
 protected:
  // A replica that tells what it got.
  void add_mirror() {
    add_replica(
        [](const FakeRequest& request) {
          return FakeAnswer{http_reply(request.head + request.body)};
        },
        {.keep_bodies = true});
  }
  Http2Client::Reply ask(const Http2Client::Fields& fields, std::string_view body = {}) {
    return Http2Client(proxy_->endpoint()).ask(fields, body);
  }
  static Http2Client::Fields infer(Http2Client::Fields more = {}) {
    return Http2Client::head("POST", "/v2/models/m/infer", std::move(more));
  }
  static Http2Client::Fields get(std::string path) {
    return Http2Client::head("GET", std::move(path));
  }
};

TEST_F(Http2ProxyTest, PassesARequestOnAndTheReplyBack) {
  add_mirror();
  start();

  const auto reply = ask(infer({{"content-length", "4"},
                                {"inference-header-content-length", "2"},
                                {"te", "trailers"},
                                {"cookie", "a=1"},
                                {"x-request-id", "7"},
                                {"cookie", "b=2"}}),
                         "{}ab");

  EXPECT_EQ(reply.status, "200");
  EXPECT_EQ(reply.body,
            "POST /v2/models/m/infer HTTP/1.1\r\nHost: gpu\r\n"
            "inference-header-content-length: 2\r\ncookie: a=1; b=2\r\nx-request-id: 7\r\n"
            "Content-Length: 4\r\n\r\n{}ab");
  EXPECT_EQ(reply.fields, "content-type: application/json\ncontent-length: " +
                              std::to_string(reply.body.size()) + "\n");
}

TEST_F(Http2ProxyTest, ABodyWithoutLengthGetsOne) {
  add_mirror();
  start();
  Http2Client client(proxy_->endpoint());
  const StreamId id = client.begin(infer());

  for (const std::string_view piece : {"ab", "", "cde"}) {
    client.send(id, piece);
    client.turn(0);
  }
  client.finish(id);

  const std::string seen = client.wait(id).body;
  EXPECT_NE(seen.find("Content-Length: 5\r\n"), std::string::npos) << seen;
  EXPECT_TRUE(seen.ends_with("\r\n\r\nabcde")) << seen;
  EXPECT_NE(client.ask(infer()).body.find("Content-Length: 0\r\n"), std::string::npos);
}

TEST_F(Http2ProxyTest, LargeBodiesGoBothWays) {
  add_replica([](const FakeRequest& request) { return FakeAnswer{http_reply(request.body)}; },
              {.keep_bodies = true});
  start();
  std::string body(3 << 20, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) {
    body[i] = static_cast<char>(i * 7919 >> 8U);
  }

  const auto with = ask(infer({{"content-length", std::to_string(body.size())}}), body);
  const auto without = ask(infer(), body);

  EXPECT_TRUE(with.body == body);
  EXPECT_TRUE(without.body == body);
}

TEST_F(Http2ProxyTest, AnswersForTheWholeServiceAreTheSame) {
  add_replica([](const FakeRequest& request) {
    return FakeAnswer{
        http_reply(request.target.ends_with("/stats")
                       ? R"({"model_stats":[{"name":"m","version":"1","inference_count":2}]})"
                       : "{}")};
  });
  start();
  ProxyTest::ask(kInfer);  // waits for the replica
  Http2Client client(proxy_->endpoint());

  for (const std::string path :
       {"/v2/health/live", "/v2/health/ready", "/v2", "/v2/models/m", "/v2/models/stats", "/none",
        "/v2/models/unknown/stats", "/v2/repository/index"}) {
    const std::string over1 = ProxyTest::ask("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    const auto over2 = client.ask(get(path));

    EXPECT_EQ(over2.status, over1.substr(9, 3)) << path;
    EXPECT_EQ(over2.body, over1.substr(over1.find("\r\n\r\n") + 4)) << path;
  }
  EXPECT_NE(client.ask(get("/metrics")).body.find("septet_"), std::string::npos);
  EXPECT_TRUE(client.ask(get("/septet/status")).body.starts_with("{"));
}

TEST_F(Http2ProxyTest, ErrorsHaveTheProtocolsBodyAndRetryAfter) {
  ProxyOptions options;
  options.max_body_bytes = 1000;
  start(options);

  const auto nobody = ask(infer(), "{}");
  EXPECT_EQ(nobody.status, "503");
  EXPECT_NE(nobody.fields.find("retry-after: 1\n"), std::string::npos) << nobody.fields;
  EXPECT_TRUE(nobody.body.starts_with("{\"error\":\"no replica is ready")) << nobody.body;
  EXPECT_EQ(ask(Http2Client::head("BREW", "/pot")).status, "405");
  EXPECT_EQ(ask(Http2Client::head("OPTIONS", "*")).status, "400");
  EXPECT_EQ(ask(infer({{"content-length", "1001"}}), std::string(1001, 'x')).status, "400");
  EXPECT_EQ(ask(infer(), std::string(1001, 'x')).status, "400");
  EXPECT_EQ(ask(infer({{"x", std::string(40'000, 'y')}})).status, "431");
  EXPECT_EQ(proxy_->stats().replies_4xx, 5U);
}

TEST_F(Http2ProxyTest, HeadHasALengthAndNoBody) {
  add_replica([](const FakeRequest&) {
    return FakeAnswer{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"};
  });
  start();

  const auto replicas = ask(Http2Client::head("HEAD", "/file"));
  const auto own = ask(Http2Client::head("HEAD", "/v2/models/m/stats"));

  EXPECT_EQ(replicas.status, "200");
  EXPECT_EQ(replicas.fields, "content-length: 5\n");
  EXPECT_TRUE(replicas.body.empty() && own.body.empty());
}

TEST_F(Http2ProxyTest, FieldsOfTheReplicasConnectionStayBehind) {
  add_replica([](const FakeRequest&) {
    return FakeAnswer{
        "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Drop\r\nX-Drop: 1\r\nKeep-Alive: "
        "timeout=5\r\n"
        "Upgrade: h2c\r\nProxy-Connection: x\r\nX-Kept: Y\r\nContent-Encoding: gzip\r\n"
        "Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"};
  });
  start();

  const auto reply = ask(infer(), "{}");

  EXPECT_EQ(reply.fields, "x-kept: Y\ncontent-encoding: gzip\n");
  EXPECT_EQ(reply.body, "abc");
  EXPECT_TRUE(reply.complete);
}

TEST_F(Http2ProxyTest, ExpectIsAnsweredBeforeTheBody) {
  add_mirror();
  start();
  Http2Client client(proxy_->endpoint());
  const StreamId id = client.begin(infer({{"expect", "100-continue"}, {"content-length", "2"}}));

  while (client.connected() && client.wait_for(id, 0).interim.empty()) {
    client.turn(1000);
  }
  client.send(id, "{}");
  client.finish(id);

  const auto reply = client.wait(id);
  EXPECT_EQ(reply.interim, "100");
  EXPECT_EQ(reply.status, "200");
  EXPECT_EQ(reply.body.find("expect"), std::string::npos);
}

TEST_F(Http2ProxyTest, AHundredStreamsOfOneConnectionAreSpreadOverAllReplicas) {
  for (int i = 0; i < 4; ++i) {
    add_replica([](const FakeRequest&) { return FakeAnswer{http_reply("{}"), milliseconds(2)}; });
  }
  start();

  const test::GrpcLoadResult result = test::run_grpc_load({.target = proxy_->endpoint(),
                                                           .kind = test::GrpcLoad::Kind::kRequest,
                                                           .calls_each = 100,
                                                           .calls = 800,
                                                           .path = "/v2/models/m/infer",
                                                           .message = "{}"});

  EXPECT_EQ(result.failed, 0U);
  EXPECT_EQ(result.statuses.at("200"), 800U);
  for (const auto& replica : replicas_) {
    // Equally fast replicas get a quarter each; a loaded machine wakes some of them late.
    EXPECT_GT(replica->requests(), 100U);
  }
}

TEST_F(Http2ProxyTest, ADyingReplicaCostsNoRequest) {
  std::atomic<int> calls = 0;
  for (int i = 0; i < 2; ++i) {
    add_replica([&calls](const FakeRequest&) {
      FakeAnswer answer{http_reply("{}")};
      if (++calls == 1) {
        answer = {"", {}, FakeAnswer::Then::kReset};
      }
      return answer;
    });
  }
  start();

  EXPECT_EQ(ask(infer(), "{}").status, "200");
  EXPECT_EQ(proxy_->stats().retries, 1U);
}

TEST_F(Http2ProxyTest, AReplyThatBreaksOffResetsItsStreamOnly) {
  add_replica([](const FakeRequest& request) {
    return request.target == "/cut"
               ? FakeAnswer{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
                            {},
                            FakeAnswer::Then::kClose}
               : FakeAnswer{http_reply("{}")};
  });
  start();
  Http2Client client(proxy_->endpoint());

  const auto cut = client.ask(Http2Client::head("POST", "/cut"));

  EXPECT_FALSE(cut.complete);
  EXPECT_EQ(cut.error, Http2Error::kInternal);
  EXPECT_EQ(client.ask(infer(), "{}").status, "200");
}

TEST_F(Http2ProxyTest, ADeadlineThatCannotBeMadeIsRefused) {
  add_replica([](const FakeRequest&) { return FakeAnswer{http_reply("{}"), milliseconds(100)}; });
  start();
  ask(infer(), "{}");
  ask(infer(), "{}");

  const auto reply = ask(infer({{"septet-timeout-ms", "10"}}), "{}");

  EXPECT_EQ(reply.status, "503");
  EXPECT_NE(reply.body.find("Request timeout expired"), std::string::npos);
}

TEST_F(Http2ProxyTest, ARequestThatIsResetFreesItsPlace) {
  add_replica([](const FakeRequest& request) {
    const bool slow = request.target == "/slow";
    return FakeAnswer{http_reply("{}"), slow ? seconds(3600) : Duration::zero()};
  });
  add_replica(answer_ok);
  start();
  Http2Client client(proxy_->endpoint());
  const StreamId id = client.begin(Http2Client::head("GET", "/slow"));
  client.finish(id);
  while (proxy_->stats().in_flight == 0) {
  }

  client.reset(id);
  client.wait(id);

  // The replica has read it, so its reply is still waited for; nobody else is.
  EXPECT_EQ(client.ask(infer(), "{}").status, "200");
  EXPECT_EQ(proxy_->stats().queued, 0U);
}

// The reply is larger than every buffer on its way; each end waits for the next one.
TEST_F(Http2ProxyTest, AClientThatTakesNothingHoldsTheReplicaBack) {
  constexpr std::size_t kBytes = 16 << 20;
  const std::string reply = http_reply(std::string(kBytes, 'x'));
  for (int i = 0; i < 2; ++i) {
    add_replica([&reply](const FakeRequest& request) {
      return FakeAnswer{request.target == "/large" ? reply : http_reply("{}")};
    });
  }
  ProxyOptions options;
  options.memory_bytes = 4 << 20;  // less than the reply
  options.max_body_bytes = 1 << 20;
  start(options);
  Http2Client client(proxy_->endpoint());
  client.take_data(false);
  const StreamId id = client.begin(Http2Client::head("GET", "/large"));
  client.finish(id);
  client.wait_for(id, 1 << 19);

  EXPECT_EQ(client.ask(infer(), "{}").status, "200");  // others are not held back
  client.take_data(true);

  const auto whole = client.wait(id);
  EXPECT_EQ(whole.body.size(), kBytes);
  EXPECT_TRUE(whole.complete);
}

// Four requests fill the memory; the windows of the others stay shut until one of them has ended.
TEST_F(Http2ProxyTest, FullMemoryHoldsClientsBack) {
  add_mirror();
  ProxyOptions options;
  options.memory_bytes = 4 << 20;
  options.max_body_bytes = 1 << 20;
  options.slots = false;
  start(options);
  constexpr std::size_t kBytes = 1 << 20;
  const auto large = infer({{"content-length", std::to_string(kBytes)}});
  Http2Client first(proxy_->endpoint());
  std::vector<StreamId> ids;
  for (int i = 0; i < 8; ++i) {
    ids.push_back(first.begin(large));
    first.send(ids.back(), std::string(kBytes - 1, 'x'));
  }
  const auto all_sent = [&] {
    std::size_t sent = 0;
    for (const StreamId id : ids) {
      sent += first.sent(id) == kBytes - 1 ? 1 : 0;
    }
    return sent;
  };

  while (all_sent() < 3) {
    first.turn(1000);
  }
  for (int i = 0; i < 20; ++i) {
    first.turn(1);
  }
  const std::size_t sent_at_once = all_sent();
  for (const StreamId id : ids) {
    first.send(id, "x");
    first.finish(id);
  }

  EXPECT_LE(sent_at_once, 4U);
  for (const StreamId id : ids) {
    EXPECT_EQ(first.wait(id).status, "200");
  }
}

TEST_F(Http2ProxyTest, StreamedDataComesAsItIsMade) {
  add_replica([](const FakeRequest&) {
    return FakeAnswer{
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        "9\r\ndata: 1\n\n\r\n"};
  });
  start();
  Http2Client client(proxy_->endpoint());
  const StreamId id = client.begin(Http2Client::head("POST", "/v2/models/m/generate_stream"));
  client.finish(id);

  // The reply has not ended and never will.
  const auto& reply = client.wait_for(id, 9);

  EXPECT_EQ(reply.status, "200");
  EXPECT_EQ(reply.fields, "content-type: text/event-stream\n");
  EXPECT_EQ(reply.body, "data: 1\n\n");
  EXPECT_FALSE(reply.complete);
}

TEST_F(Http2ProxyTest, AnUpgradeToHttp2IsIgnored) {
  add_mirror();
  start();

  const std::string reply = ProxyTest::ask(
      "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"
      "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\nContent-Length: 2\r\n\r\n{}");

  EXPECT_TRUE(reply.starts_with("HTTP/1.1 200 OK\r\n")) << reply;
  EXPECT_EQ(reply.find("ettings"), std::string::npos) << reply;
  EXPECT_EQ(reply.find("h2c"), std::string::npos) << reply;
}

}  // namespace
}  // namespace septet::balance
