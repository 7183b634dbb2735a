// HTTP/1.1 and gRPC through TLS on the proxy's listener; OpenSSL and gRPC C++ are the clients.

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <csignal>

#include "balance/edge/proxy_fixture.h"
#include "support/fake_grpc_replica.h"
#include "support/grpc_loop.h"
#include "support/tls_client.h"

namespace septet::balance {
namespace {

using inference::TlsIdentity;
using test::TlsClient;

constexpr std::size_t kPrefixBytes = 5;  // of a gRPC message
const std::string kHttp1 = "\x08http/1.1";

class TlsProxyTest : public ProxyTest {
 protected:
  TlsProxyTest() : pem_(test::make_pem()) { std::signal(SIGPIPE, SIG_IGN); }

  // A replica that answers with the body it got.
  void add_echo() {
    add_replica([](const FakeRequest& request) { return FakeAnswer{http_reply(request.body)}; },
                {.keep_bodies = true});
  }
  ProxyOptions with_tls() const {
    ProxyOptions options;
    options.listen = {kAnyPort};
    auto identity =
        TlsIdentity::from_pem(pem_.certificate, pem_.key, TlsIdentity::Protocols::kHttp1And2);
    EXPECT_TRUE(identity.ok()) << identity.error().text();
    options.tls = *identity;
    return options;
  }
  static std::string infer(const std::string& body, const std::string& fields = {}) {
    return "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\n" + fields +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  test::Pem pem_;
};

TEST_F(TlsProxyTest, AnswersRequestAfterRequest) {
  add_echo();
  start(with_tls());
  TlsClient client(proxy_->endpoint(), kHttp1);

  for (const std::string body : {"ab", "cd", "ef"}) {
    client.send(infer(body));
    EXPECT_EQ(client.receive(http_reply(body).size()), http_reply(body));
  }
  EXPECT_EQ(client.protocol(), "http/1.1");
}

// All in one record: the later requests are decrypted together with the first.
TEST_F(TlsProxyTest, AnswersPipelinedRequests) {
  add_echo();
  start(with_tls());
  TlsClient client(proxy_->endpoint());

  client.send(infer("ab") + infer("cd") + infer("ef"));

  const std::string expected = http_reply("ab") + http_reply("cd") + http_reply("ef");
  EXPECT_EQ(client.receive(expected.size()), expected);
}

TEST_F(TlsProxyTest, LargeBodiesGoBothWays) {
  add_echo();
  start(with_tls());
  TlsClient client(proxy_->endpoint());
  std::string body(3 << 20, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) {
    body[i] = static_cast<char>(i * 7919 >> 8U);
  }

  client.send(infer(body));

  EXPECT_TRUE(client.receive(http_reply(body).size()) == http_reply(body));
}

TEST_F(TlsProxyTest, EndsAsTlsDoesWhenAskedToClose) {
  add_echo();
  start(with_tls());
  TlsClient client(proxy_->endpoint());

  client.send(infer("ab", "Connection: close\r\n"));

  EXPECT_TRUE(client.receive(1 << 20).ends_with("\r\n\r\nab"));
  EXPECT_TRUE(client.ended());
}

TEST_F(TlsProxyTest, AClientWithoutTlsGetsNothingAndOthersAreServed) {
  add_echo();
  start(with_tls());

  RawClient plain(proxy_->endpoint());
  plain.send(infer("ab"));

  EXPECT_EQ(plain.rest().find("HTTP/1.1 200"), std::string::npos);
  TlsClient client(proxy_->endpoint());
  client.send(infer("ab"));
  EXPECT_EQ(client.receive(http_reply("ab").size()), http_reply("ab"));
}

TEST_F(TlsProxyTest, ClientsThatLeaveMidHandshakeOrMidRequestCostNothing) {
  add_echo();
  start(with_tls());
  for (int i = 0; i < 20; ++i) {
    RawClient(proxy_->endpoint()).send("\x16\x03\x01\x02");  // a record's first bytes
    TlsClient(proxy_->endpoint()).send(infer("ab").substr(0, 20));
    TlsClient(proxy_->endpoint()).send(infer(std::string(100'000, 'a')));
  }

  TlsClient client(proxy_->endpoint());
  client.send(infer("ab"));
  EXPECT_EQ(client.receive(http_reply("ab").size()), http_reply("ab"));
}

TEST_F(TlsProxyTest, GrpcIsChosenByAlpnAndServed) {
  add_echo();
  const std::string path = testing::TempDir() + "/septet_tls_grpc_" + std::to_string(getpid());
  const std::string large = test::grpc_infer_message("m", 300'000);
  const test::FakeGrpcReplica grpc(
      {"", 0, path}, [&large](const test::FakeCall&) { return test::FakeCallAnswer{large}; });
  std::vector<Upstream> set = upstreams();
  set.front().grpc = grpc.endpoint();
  auto proxy = Proxy::start(with_tls(), set);
  ASSERT_TRUE(proxy.ok());
  grpc::SslCredentialsOptions trust;
  trust.pem_root_certs = pem_.certificate;
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride("localhost");
  arguments.SetMaxReceiveMessageSize(1 << 20);
  const auto channel = grpc::CreateCustomChannel((*proxy)->endpoint().text(),
                                                 grpc::SslCredentials(trust), arguments);
  grpc::GenericStub stub(channel);

  for (int i = 0; i < 3; ++i) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    grpc::CompletionQueue queue;
    const std::string message = test::grpc_infer_message("m", 200'000).substr(kPrefixBytes);
    const grpc::Slice slice(message);
    const auto call = stub.PrepareUnaryCall(&context, "/inference.GRPCInferenceService/ModelInfer",
                                            grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    call->Finish(&reply, &status, nullptr);
    void* tag = nullptr;
    bool good = false;
    queue.Next(&tag, &good);

    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(reply.Length(), large.size() - kPrefixBytes);
  }
}

TEST_F(TlsProxyTest, WhoOffersBothGetsHttp2) {
  add_echo();
  start(with_tls());
  TlsClient both(proxy_->endpoint(), "\x08http/1.1\x02h2");

  both.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9));

  const std::string answer = both.receive(9);
  ASSERT_GE(answer.size(), 9U);
  EXPECT_EQ(answer[3], '\4');  // its SETTINGS
  EXPECT_EQ(both.protocol(), "h2");
}

}  // namespace
}  // namespace septet::balance
