// Ordinary requests over HTTP/2 as curl sends them, in the clear and through TLS; and replicas
// killed with SIGKILL under such load.

#include <gtest/gtest.h>

#include <cstdio>

#include "integration/kill_fixture.h"
#include "support/fake_replica.h"
#include "support/grpc_loop.h"
#include "support/tls_client.h"

namespace septet::test {
namespace {

class CurlTest : public testing::Test {
 protected:
  void SetUp() override {
    if (run("curl --version").find("HTTP2") == std::string::npos) {
      GTEST_SKIP() << "curl with HTTP/2 is not installed";
    }
    std::signal(SIGPIPE, SIG_IGN);
    replica_.emplace(
        FakeReplica::Options{
            .listen = {"", 0, testing::TempDir() + "/septet_curl_" + std::to_string(getpid())},
            .keep_bodies = true},
        [](const FakeRequest& request) {
          return FakeAnswer{http_reply(request.method + " " + request.target + " " +
                                       std::to_string(request.body.size()))};
        });
  }
  void start(std::shared_ptr<const inference::TlsIdentity> tls = nullptr) {
    balance::ProxyOptions options;
    options.listen = {os::Endpoint{"127.0.0.1", 0, ""}};
    options.tls = std::move(tls);
    auto proxy = balance::Proxy::start(options, {{"r", replica_->endpoint(), {}}});
    ASSERT_TRUE(proxy.ok());
    proxy_ = std::move(*proxy);
  }
  static std::string run(const std::string& command) {
    std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
    std::string said;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
      said += static_cast<char>(c);
    }
    pclose(pipe);
    return said;
  }
  // What the reply's body is, and by which version of HTTP with which status it came.
  std::string curl(const std::string& url_and_options) {
    return run(
        "curl --silent --show-error --max-time 60 --write-out ' HTTP/%{http_version} "
        "%{http_code}' " +
        url_and_options);
  }
  std::string url(const std::string& scheme, const std::string& path) const {
    return scheme + "://" + proxy_->endpoint().text() + path;
  }

  std::optional<FakeReplica> replica_;
  std::unique_ptr<balance::Proxy> proxy_;
};

TEST_F(CurlTest, IsServedByPriorKnowledge) {
  start();
  const std::string curl2 = "--http2-prior-knowledge ";

  EXPECT_EQ(curl(curl2 + url("http", "/v2/health/live")), " HTTP/2 200");
  EXPECT_EQ(curl(curl2 + "--data '{}' " + url("http", "/v2/models/m/infer")),
            "POST /v2/models/m/infer 2 HTTP/2 200");
  EXPECT_EQ(curl(curl2 + "--head " + url("http", "/none")).substr(0, 10), "HTTP/2 200");
  // Larger than every window, with and without a length.
  const std::string large = "head -c 3000000 /dev/zero | ";
  for (const std::string& fields :
       {std::string(), std::string("--header 'Content-Length: 3000000' ")}) {
    EXPECT_EQ(run(large +
                  "curl --silent --max-time 60 --http2-prior-knowledge --request POST "
                  "--upload-file - " +
                  fields + url("http", "/v2/models/m/infer")),
              "POST /v2/models/m/infer 3000000");
  }
}

TEST_F(CurlTest, ThatAsksForAnUpgradeIsServedOverHttp1) {
  start();

  EXPECT_EQ(curl("--http2 --data '{}' " + url("http", "/v2/models/m/infer")),
            "POST /v2/models/m/infer 2 HTTP/1.1 200");
}

TEST_F(CurlTest, ChoosesHttp2ByAlpn) {
  const Pem pem = make_pem();
  const auto identity = inference::TlsIdentity::from_pem(
      pem.certificate, pem.key, inference::TlsIdentity::Protocols::kHttp1And2);
  ASSERT_TRUE(identity.ok());
  start(*identity);

  const std::string request = "--insecure --data '{}' " + url("https", "/v2/models/m/infer");
  EXPECT_EQ(curl("--http2 " + request), "POST /v2/models/m/infer 2 HTTP/2 200");
  EXPECT_EQ(curl("--http1.1 " + request), "POST /v2/models/m/infer 2 HTTP/1.1 200");
}

class Http2KillTest : public KillFixture {
 protected:
  Http2KillTest() : KillFixture(Speaks::kHttp) {}
};

TEST_F(Http2KillTest, KilledReplicasCostNoRequest) {
  start_proxy(upstreams_);

  const GrpcLoadResult result =
      run_grpc_load({.target = proxy_->endpoint(),
                     .kind = GrpcLoad::Kind::kRequest,
                     .connections = 2,
                     .calls_each = 8,
                     .calls = calls_wanted(),
                     .path = "/v2/models/m/infer",
                     .message = std::string(1024, 'x'),
                     .give_up = seconds(280),
                     .on_ended = on_ended([this](std::size_t turn) { kill_one(turn); })});

  EXPECT_EQ(disturbed_, kDisturbances);
  EXPECT_EQ(result.failed, 0U);
  EXPECT_EQ(result.latencies.size(), calls_wanted());
  EXPECT_GT(proxy_->stats().retries, 0U);
}

}  // namespace
}  // namespace septet::test
