// `septet status --url` shows a running balancer.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "balance/edge/proxy.h"
#include "integration/septet_run.h"
#include "support/certificates.h"
#include "support/fake_replica.h"
#include "support/raw_client.h"

namespace septet::test {
namespace {

class BalanceStatusTest : public testing::Test {
 protected:
  // What the program says, and how it ends.
  std::string status_of(const std::string& address, int expected_code,
                        const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"status", "--url", address, "-o", "json"};
    words.insert(words.end(), more.begin(), more.end());
    SeptetRun run(folder_, "status", words);
    const auto ended = run.wait(seconds(60));
    EXPECT_TRUE(ended && ended->code == expected_code) << run.output();
    return run.output();
  }

  TestFolder folder_;
};

TEST_F(BalanceStatusTest, ShowsWhatEveryReplicaDoes) {
  const FakeReplica replica({.listen = {"", 0, folder_ / "r"}},
                            [](const FakeRequest&) { return FakeAnswer{http_reply("{}")}; });
  balance::ProxyOptions options;
  options.listen = {os::Endpoint{"127.0.0.1", 0, ""}};
  auto proxy = balance::Proxy::start(options, {{"first", replica.endpoint(), {}}});
  ASSERT_TRUE(proxy.ok());
  RawClient client((*proxy)->endpoint());
  client.send("POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}");
  client.reply();

  const auto shown =
      nlohmann::json::parse(status_of((*proxy)->endpoint().text(), 0), nullptr, false);

  ASSERT_TRUE(shown.is_object());
  EXPECT_EQ(shown["schema"], "septet.balance/1");
  ASSERT_EQ(shown["replicas"].size(), 1U);
  EXPECT_EQ(shown["replicas"][0]["name"], "first");
  EXPECT_EQ(shown["replicas"][0]["state"], "up");
  EXPECT_EQ(shown["replicas"][0]["completed"], 1);
}

TEST_F(BalanceStatusTest, AsksThroughTls) {
  const CertificateAuthority authority;
  const Pem pem = authority.issue("localhost", "IP:127.0.0.1");
  balance::ProxyOptions options;
  options.listen = {os::Endpoint{"127.0.0.1", 0, ""}};
  options.tls = *inference::TlsIdentity::from_pem(pem.certificate, pem.key,
                                                  inference::TlsIdentity::Protocols::kHttp1And2);
  auto proxy = balance::Proxy::start(options, {});
  ASSERT_TRUE(proxy.ok());
  const std::string address = "https://" + (*proxy)->endpoint().text();
  const std::string trusted = folder_ / "ca.pem";
  std::ofstream(trusted) << authority.certificate();

  EXPECT_NE(status_of(address, 0, {"--tls-ca", trusted}).find("septet.balance/1"),
            std::string::npos);
  const std::string refused = status_of(address, 1);
  EXPECT_NE(refused.find("certificate is not trusted"), std::string::npos) << refused;
  status_of((*proxy)->endpoint().text(), 2, {"--tls-ca", trusted});
}

TEST_F(BalanceStatusTest, SaysThatAnotherServerIsNoBalancer) {
  const FakeReplica server({.listen = {"127.0.0.1", 0, ""}}, [](const FakeRequest&) {
    return FakeAnswer{http_reply("{\"replicas\":[{\"busy_share\":\"much\"}]}")};
  });

  const std::string said = status_of(server.endpoint().text(), 1);

  EXPECT_NE(said.find("not as a balancer of septet"), std::string::npos) << said;
}

}  // namespace
}  // namespace septet::test
