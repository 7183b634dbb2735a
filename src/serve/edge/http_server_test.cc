// The HTTP server against clients that misbehave.
#include "serve/edge/http_server.h"

#include <gmock/gmock.h>

#include "support/test_server.h"

namespace septet::serve {
namespace {

using test_support::HttpClient;
using test_support::TestServer;
using ::testing::HasSubstr;

constexpr const char* kInfer = "/v2/models/copy/infer";

class HttpServerTest : public ::testing::Test {
 protected:
  void start(HttpServerOptions http = {}) {
    server_.add_copy("copy", "TYPE_UINT8");
    server_.start({}, http);
  }
  // A request whose body is `size` raw bytes, so that its answer is as large.
  static std::string raw_fields() { return "Inference-Header-Content-Length: 0\r\n"; }

  TestServer server_;
};

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  start();
  HttpClient client = server_.connect();

  client.send(
      "GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\nGET /v9 HTTP/1.1\r\nHost: x\r\n\r\n"
      "POST /v2/models/copy/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
      "Inference-Header-Content-Length: 0\r\n\r\nabGET /v2 HTTP/1.1\r\nHost: x\r\n\r\n");

  EXPECT_EQ(client.receive().status, 200U);
  EXPECT_EQ(client.receive().status, 404U);
  EXPECT_THAT(client.receive().body, ::testing::EndsWith("ab"));
  EXPECT_THAT(client.receive().body, HasSubstr("triton"));
}

TEST_F(HttpServerTest, TakesARequestThatComesByteByByte) {
  start();
  HttpClient client = server_.connect();

  for (const char c :
       std::string("POST /v2/models/copy/infer HTTP/1.1\r\nHost: x\r\nContent-Length:"
                   " 3\r\nInference-Header-Content-Length: 0\r\n\r\nxyz")) {
    client.send(std::string_view(&c, 1));
  }

  EXPECT_THAT(client.receive().body, ::testing::EndsWith("xyz"));
}

TEST_F(HttpServerTest, TakesChunkedBodiesUpToTheLimit) {
  start({.max_body_bytes = 100});
  HttpClient client = server_.connect();
  const std::string head = "POST /v2/models/copy/infer HTTP/1.1\r\nHost: x\r\n" + raw_fields() +
                           "Transfer-Encoding: chunked\r\n\r\n";

  client.send(head + "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n");
  EXPECT_THAT(client.receive().body, ::testing::EndsWith("abcdefg"));
  client.send(head + "65\r\n" + std::string(0x65, 'x') + "\r\n0\r\n\r\n");
  const auto reply = client.receive();

  EXPECT_EQ(reply.status, 400U);
  EXPECT_THAT(reply.body, HasSubstr("over the limit of 100 bytes"));
  EXPECT_TRUE(client.is_closed());
}

TEST_F(HttpServerTest, RefusesABodyOverTheLimitBeforeReadingIt) {
  start({.max_body_bytes = 100});
  HttpClient client = server_.connect();

  client.send(
      "POST /v2/models/copy/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n");

  EXPECT_EQ(client.receive().status, 400U);
  EXPECT_TRUE(client.is_closed());
}

TEST_F(HttpServerTest, RefusesWhatCouldBeReadInTwoWays) {
  start();
  const std::vector<std::string> heads = {
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",
      "GARBAGE\r\n\r\n",
  };

  for (const std::string& head : heads) {
    HttpClient client = server_.connect();
    client.send(head);
    EXPECT_EQ(client.receive().status, 400U) << head;
    EXPECT_TRUE(client.is_closed());
  }
  HttpClient other = server_.connect();
  EXPECT_EQ(other.get("/v2/health/live").status, 200U);
}

TEST_F(HttpServerTest, AnOversizedHeadIsRefused) {
  start();
  HttpClient client = server_.connect();

  client.send("GET /v2 HTTP/1.1\r\nHost: x\r\nX: " + std::string(20'000, 'a') + "\r\n\r\n");

  EXPECT_EQ(client.receive().status, 431U);
}

TEST_F(HttpServerTest, AHalfClosedClientStillGetsItsAnswer) {
  start();
  HttpClient client = server_.connect();

  client.send("GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n");
  client.finish_sending();

  EXPECT_EQ(client.receive().status, 200U);
  EXPECT_TRUE(client.is_closed());
}

TEST_F(HttpServerTest, ASlowHeadAndASlowBodyAreEnded) {
  start({.head_timeout = milliseconds(1), .body_grace = milliseconds(1)});
  HttpClient head = server_.connect();
  HttpClient body = server_.connect();

  head.send("GET /v2 HT");
  body.send("POST /v2/models/copy/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");

  EXPECT_EQ(head.receive().status, 408U);
  EXPECT_EQ(body.receive().status, 408U);
  EXPECT_TRUE(head.is_closed());
}

TEST_F(HttpServerTest, AnIdleConnectionEndsInTime) {
  start({.idle_timeout = milliseconds(1)});
  HttpClient client = server_.connect();

  EXPECT_EQ(client.get("/v2").status, 200U);

  EXPECT_TRUE(client.is_closed());
}

TEST_F(HttpServerTest, ClosesWhenAskedTo) {
  start();
  HttpClient client = server_.connect();

  client.send("GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");

  EXPECT_EQ(client.receive().fields.at("connection"), "close");
  EXPECT_TRUE(client.is_closed());
}

TEST_F(HttpServerTest, LargeBodiesGoBothWays) {
  start();
  HttpClient client = server_.connect();
  std::string body(8 << 20, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) {
    body[i] = static_cast<char>(i * 7919 >> 8);
  }

  const auto reply = client.post(kInfer, body, raw_fields());

  ASSERT_EQ(reply.status, 200U);
  EXPECT_TRUE(reply.body.ends_with(body));
}

TEST_F(HttpServerTest, AClientThatGoesWhileItsRequestRunsDisturbsNoOther) {
  server_.add_copy("held", "TYPE_UINT8", "", "hold");
  start();
  {
    HttpClient client = server_.connect();
    client.send("POST /v2/models/held/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n" +
                raw_fields() + "\r\na");
    server_.backend().await_held(1);
  }
  server_.backend().release();
  HttpClient other = server_.connect();

  EXPECT_EQ(other.post("/v2/models/held/infer", "b", raw_fields()).status, 200U);
}

}  // namespace
}  // namespace septet::serve
