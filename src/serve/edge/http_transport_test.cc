// HTTP through TLS: a server with a certificate of its own making, and OpenSSL as the client.
#include "serve/edge/http_transport.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <csignal>
#include <thread>

#include "os/endpoint.h"
#include "os/event_loop.h"
#include "serve/edge/http_server.h"
#include "support/tls_client.h"

namespace septet::serve {
namespace {

using test::make_pem;
using test::Pem;
using test::TlsClient;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Answers each request with its body.
class Echo : public HttpHandler {
 public:
  void handle(std::shared_ptr<HttpExchange> exchange) override {
    exchange->respond({.body = std::string(inference::Blob{exchange->body(), nullptr}.text())});
  }
};

class HttpsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // As septet serve does: OpenSSL's writes raise the signal that sendmsg can be told not to.
    std::signal(SIGPIPE, SIG_IGN);
    const Pem pem = make_pem();
    auto identity = TlsIdentity::from_pem(pem.certificate, pem.key);
    ASSERT_TRUE(identity.ok()) << identity.error().text();
    server_ = std::make_unique<HttpServer>(
        loop_, echo_, HttpServerOptions{.head_timeout = seconds(10), .tls = *identity});
    endpoint_ = server_->listen({.host = "127.0.0.1", .port = 0, .unix_path = {}}).value();
    thread_ = std::thread([this] { loop_.run(); });
  }
  void TearDown() override {
    loop_.stop();
    thread_.join();
    server_.reset();
  }

  Echo echo_;
  os::EventLoop loop_;
  std::unique_ptr<HttpServer> server_;
  os::Endpoint endpoint_;
  std::thread thread_;
};

std::string post(const std::string& body, const std::string& fields = {}) {
  return "POST /x HTTP/1.1\r\nHost: x\r\n" + fields +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

constexpr std::size_t kHeadOfTwo = std::string_view(
                                       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                       "Content-Length: 2\r\n\r\n")
                                       .size();

TEST_F(HttpsTest, AnswersRequestAfterRequest) {
  TlsClient client(endpoint_);

  for (const char* body : {"ab", "cd"}) {
    client.send(post(body));
    const std::string answer = client.receive(kHeadOfTwo + 2);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, EndsWith(body));
  }
}

// All in one record: the second request is decrypted together with the first.
TEST_F(HttpsTest, AnswersPipelinedRequests) {
  TlsClient client(endpoint_);

  client.send(post("ab") + post("cd") + post("ef"));

  EXPECT_THAT(client.receive(3 * (kHeadOfTwo + 2)), EndsWith("ef"));
}

TEST_F(HttpsTest, LargeBodiesGoBothWays) {
  TlsClient client(endpoint_);
  std::string body(3 << 20, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) {
    body[i] = static_cast<char>(i * 7919 >> 8);
  }

  client.send(post(body));

  EXPECT_THAT(client.receive(body.size() + kHeadOfTwo + 6).ends_with(body), true);
}

TEST_F(HttpsTest, EndsAsTlsDoesWhenAskedToClose) {
  TlsClient client(endpoint_);

  client.send(post("ab", "Connection: close\r\n"));

  EXPECT_THAT(client.receive(1 << 20), EndsWith("ab"));
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpsTest, AClientWithoutTlsIsTurnedAway) {
  auto fd = os::connect_to(endpoint_, 30'000);
  ASSERT_TRUE(fd.ok());
  const std::string text = post("ab");
  ASSERT_EQ(::send(fd->get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));

  std::string received;
  char buffer[4096];
  for (;;) {
    pollfd ready{fd->get(), POLLIN, 0};
    ASSERT_EQ(::poll(&ready, 1, 30'000), 1);
    const ssize_t got = ::recv(fd->get(), buffer, sizeof buffer, 0);
    if (got <= 0) {
      break;
    }
    received.append(buffer, static_cast<std::size_t>(got));
  }

  EXPECT_EQ(received.find("HTTP/1.1 200"), std::string::npos);
  TlsClient other(endpoint_);
  other.send(post("ab"));
  EXPECT_THAT(other.receive(kHeadOfTwo + 2), EndsWith("ab"));
}

TEST(TlsIdentity, SaysWhatIsWrongWithItsFiles) {
  const Pem one = make_pem();
  const Pem other = make_pem();

  EXPECT_THAT(TlsIdentity::from_pem("no PEM", one.key).error().text(),
              HasSubstr("cannot read the TLS certificate"));
  EXPECT_THAT(TlsIdentity::from_pem(one.certificate, "no PEM").error().text(),
              HasSubstr("private key"));
  EXPECT_THAT(TlsIdentity::from_pem(one.certificate, other.key).error().text(),
              HasSubstr("private key"));
}

}  // namespace
}  // namespace septet::serve
