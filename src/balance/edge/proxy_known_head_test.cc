// A head that is the same as the one before is not taken apart again: nobody can tell.

#include "balance/edge/proxy_fixture.h"

namespace septet::balance {
namespace {

class KnownHeadTest : public ProxyTest {
 protected:
  // A replica that says what came, as METHOD TARGET LENGTH BODY.
  void add_echo() {
    const auto echo = [](const FakeRequest& request) {
      const std::size_t at = request.head.find("Content-Length: ");
      const std::string length =
          at == std::string::npos
              ? "-"
              : request.head.substr(at + 16, request.head.find('\r', at) - at - 16);
      return FakeAnswer{
          http_reply(request.method + " " + request.target + " " + length + " " + request.body)};
    };
    add_replica(echo, {.keep_bodies = true});
  }
  static std::string body_of(const std::string& reply) {
    return reply.substr(std::min(reply.size(), reply.find("\r\n\r\n") + 4));
  }
};

TEST_F(KnownHeadTest, EachRequestKeepsItsOwnBody) {
  add_echo();
  start();
  RawClient client(proxy_->endpoint());
  const std::string head =
      "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";

  for (const char* body : {"abc", "def", "ghi"}) {
    client.send(head + body);
    EXPECT_EQ(body_of(client.reply()), "POST /v2/models/m/infer 3 " + std::string(body));
  }
}

TEST_F(KnownHeadTest, AnotherHeadInBetweenIsAnotherRequest) {
  add_echo();
  start();
  RawClient client(proxy_->endpoint());
  const auto infer = [](const std::string& model, const std::string& body) {
    return "POST /v2/models/" + model +
           "/infer HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  };

  for (const char* model : {"m", "n", "m", "m"}) {
    client.send(infer(model, "ab"));
    EXPECT_EQ(body_of(client.reply()), "POST /v2/models/" + std::string(model) + "/infer 2 ab");
    client.send("GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(client.reply().starts_with("HTTP/1.1 200"));
  }
}

TEST_F(KnownHeadTest, AChunkedBodyHasItsOwnLength) {
  add_echo();
  start();
  RawClient client(proxy_->endpoint());
  const std::string head =
      "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

  client.send(head + "3\r\nabc\r\n0\r\n\r\n");
  EXPECT_EQ(body_of(client.reply()), "POST /v2/models/m/infer 3 abc");
  client.send(head + "5\r\nabcde\r\n0\r\n\r\n");
  EXPECT_EQ(body_of(client.reply()), "POST /v2/models/m/infer 5 abcde");
}

TEST_F(KnownHeadTest, AHeadThatComesInPiecesIsStillThatHead) {
  add_echo();
  start();
  RawClient client(proxy_->endpoint());
  const std::string head =
      "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n";
  const std::string answer = "POST /v2/models/m/infer 2 ab";
  client.send(head + "ab");
  EXPECT_EQ(body_of(client.reply()), answer);

  for (const std::size_t cut : {std::size_t{1}, head.size() - 1, head.size() + 1}) {
    client.send((head + "ab").substr(0, cut));
    ask("GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n");  // the piece has been read by then
    client.send((head + "ab").substr(cut));
    EXPECT_EQ(body_of(client.reply()), answer) << cut;
  }
}

TEST_F(KnownHeadTest, TheAnswerToHeadHasNoBodyThoughItsHeadIsTheSame) {
  add_replica([](const FakeRequest& request) {
    std::string reply = http_reply("hello");
    return FakeAnswer{request.method == "HEAD" ? reply.substr(0, reply.size() - 5) : reply};
  });
  start();
  RawClient client(proxy_->endpoint());
  const std::string rest = " /v2/models/m/infer HTTP/1.1\r\nHost: a\r\n\r\n";

  client.send("DELETE" + rest + "HEAD" + rest + "DELETE" + rest + "HEAD" +
              rest.substr(0, rest.size() - 2) + "Connection: close\r\n\r\n");
  const std::string replies = client.rest();

  const std::string head = http_reply("hello").substr(0, http_reply("hello").size() - 5);
  EXPECT_EQ(replies, head + "hello" + head + head + "hello" + head.substr(0, head.size() - 2) +
                         "Connection: close\r\n\r\n");
}

TEST_F(KnownHeadTest, AClientOfHttp10GetsItsOwnReplyHead) {
  add_echo();
  start();
  ask(kInfer);
  const std::string old =
      "POST /v2/models/m/infer HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}";
  const std::string last =
      "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
      "Content-Length: 2\r\n\r\n{}";

  EXPECT_NE(ask(old).find("Connection: keep-alive\r\n"), std::string::npos);
  EXPECT_NE(ask(last).find("Connection: close\r\n"), std::string::npos);
  EXPECT_EQ(ask(kInfer).find("Connection:"), std::string::npos);
}

}  // namespace
}  // namespace septet::balance
