// What the proxy tells of itself, and what it passes on for others to find a request again.

#include <unistd.h>

#include <fstream>

#include "balance/edge/proxy_fixture.h"

namespace septet::balance {
namespace {

constexpr Duration kFar = milliseconds(30);

TEST_F(ProxyTest, PassesRequestIdAndTraceparentOnUnchanged) {
  std::string seen;
  add_replica([&seen](const FakeRequest& request) {
    seen = request.head;
    return FakeAnswer{"HTTP/1.1 200 OK\r\nX-Request-Id: 7\r\nContent-Length: 2\r\n\r\n{}"};
  });
  start();

  const std::string reply =
      ask("POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nX-Request-Id: 7\r\n"
          "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n"
          "Content-Length: 2\r\n\r\n{}");

  EXPECT_NE(seen.find("X-Request-Id: 7\r\n"), std::string::npos);
  EXPECT_NE(seen.find("traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n"),
            std::string::npos);
  EXPECT_NE(reply.find("X-Request-Id: 7\r\n"), std::string::npos);
}

TEST_F(ProxyTest, ShowsEveryReplicaInItsMetrics) {
  add_replica(answer_ok);
  start();
  ask(kInfer);

  const std::string text = ask("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");

  const std::string labels = "{replica=\"" + upstreams().front().name + "\"} ";
  for (const char* sample : {"septet_replica_up", "septet_replica_in_flight",
                             "septet_replica_busy_share", "septet_replica_busy_seconds_total",
                             "septet_replica_speed", "septet_replica_ejections_total",
                             "septet_replica_streams", "septet_replica_round_trip_seconds"}) {
    EXPECT_NE(text.find(sample + labels), std::string::npos) << sample << text;
  }
  EXPECT_NE(text.find("septet_replica_completed_total" + labels + "1\n"), std::string::npos);
  EXPECT_NE(text.find("septet_balance_model_queued{model=\"m\"} 0\n"), std::string::npos);
}

TEST_F(ProxyTest, SaysItsOwnStateAsJson) {
  add_replica(answer_ok);
  start();
  ask(kInfer);

  const std::string text = ask("GET /septet/status HTTP/1.1\r\nHost: a\r\n\r\n");

  EXPECT_NE(text.find("\"schema\":\"septet.balance/1\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"state\":\"up\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"completed\":1"), std::string::npos) << text;
  EXPECT_NE(text.find("{\"model\":\"m\",\"protocol\":\"http\",\"queued\":0}"), std::string::npos)
      << text;
}

TEST_F(ProxyTest, MeasuresHowFarAwayAReplicaIs) {
  const FakeReplica replica({.listen = kAnyPort}, [](const FakeRequest& request) {
    return FakeAnswer{http_reply("{}"), request.method == "GET" ? kFar : Duration::zero()};
  });
  ProxyOptions options;
  options.listen = {kAnyPort};
  auto proxy = Proxy::start(options, {{"far", replica.endpoint(), {}}});
  ASSERT_TRUE(proxy.ok());
  RawClient client((*proxy)->endpoint());
  client.send(kInfer);
  client.reply();  // the replica has joined

  const ProxyStats stats = (*proxy)->stats();

  EXPECT_GE(stats.upstreams.front().round_trip_us, to_microseconds(kFar));
  EXPECT_LT(stats.upstreams.front().round_trip_us, 2e6);  // the longest that a question waits
}

TEST_F(ProxyTest, LogsOneRequestInSoMany) {
  const std::string path = testing::TempDir() + "/septet_access_" + std::to_string(getpid());
  add_replica(answer_ok);
  ProxyOptions options;
  options.access_log = path;
  options.access_log_every = 2;
  start(options);
  const std::string request =
      "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nX-Request-Id: a\"b\r\n"
      "Content-Length: 2\r\n\r\n{}";
  for (int i = 0; i < 4; ++i) {
    ask(request);
  }
  proxy_.reset();  // writes what is left

  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  ::unlink(path.c_str());
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NE(
      lines[0].find("\"protocol\":\"http\",\"target\":\"POST /v2/models/m/infer\",\"status\":200"),
      std::string::npos)
      << lines[0];
  EXPECT_NE(lines[0].find("\"request_id\":\"a\\\"b\""), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace septet::balance
