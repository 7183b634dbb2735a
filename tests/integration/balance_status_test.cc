// `septet status --url` shows a running balancer.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "balance/edge/proxy.h"
#include "integration/septet_run.h"
#include "support/fake_replica.h"
#include "support/raw_client.h"

namespace septet::test {
namespace {

class BalanceStatusTest : public testing::Test {
 protected:
  // What the program says, and how it ends.
  std::string status_of(const std::string& address, int expected_code) {
    SeptetRun run(folder_, "status", {"status", "--url", address, "-o", "json"});
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

TEST_F(BalanceStatusTest, SaysThatAnotherServerIsNoBalancer) {
  const FakeReplica server({.listen = {"127.0.0.1", 0, ""}}, [](const FakeRequest&) {
    return FakeAnswer{http_reply("{\"replicas\":[{\"busy_share\":\"much\"}]}")};
  });

  const std::string said = status_of(server.endpoint().text(), 1);

  EXPECT_NE(said.find("not as a balancer of septet"), std::string::npos) << said;
}

}  // namespace
}  // namespace septet::test
