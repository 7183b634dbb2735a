// kill -9 of a replica while septet perf measures through the balancer: no request fails, and the
// supervisor brings the replica back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>

#include "agent/edge/replica_set.h"
#include "balance/edge/proxy.h"
#include "integration/septet_run.h"

namespace septet::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Duration kPatience = seconds(240);
constexpr const char* kModel = "simple";
constexpr int kReplicas = 3;

class ServeKillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = cannot_serve(kModel)) {
      GTEST_SKIP() << *reason;
    }
    replicas_ = *agent::ReplicaSet::start({});
    std::vector<balance::Upstream> upstreams;
    for (int i = 0; i < kReplicas; ++i) {
      const std::string name = "r" + std::to_string(i);
      const os::Endpoint endpoint = *os::parse_endpoint("unix:" + (folder_ / name), 0);
      agent::ReplicaSpec spec;
      spec.name = name;
      spec.process.arguments = {
          SEPTET_PROGRAM, "serve",    "--model-repository", SEPTET_SOURCE_DIR "/models", "--model",
          kModel,         "--listen", endpoint.text(),      "--exit-with-parent"};
      spec.endpoint = endpoint;
      spec.health_target = std::string("/v2/models/") + kModel + "/ready";
      spec.log_path = folder_ / (name + ".log");
      ASSERT_TRUE(replicas_->add(spec).ok());
      upstreams.push_back({.name = name, .endpoint = endpoint, .models = {}});
    }
    const Result<Ok> ready = replicas_->wait_ready(kPatience, interrupted_);
    ASSERT_TRUE(ready.ok()) << ready.error().text();
    balance::ProxyOptions options;
    options.listen = {*os::parse_endpoint("unix:" + (folder_ / "balancer"), 0)};
    auto proxy = balance::Proxy::start(options, upstreams);
    ASSERT_TRUE(proxy.ok()) << proxy.error().text();
    proxy_ = *std::move(proxy);
  }

  bool answered(std::uint64_t requests) const { return proxy_->stats().replies_2xx >= requests; }
  agent::ReplicaStatus status(int index) const {
    return replicas_->status()[static_cast<std::size_t>(index)];
  }

  TestFolder folder_;
  std::atomic<bool> interrupted_ = false;
  std::unique_ptr<agent::ReplicaSet> replicas_;
  std::unique_ptr<balance::Proxy> proxy_;
};

TEST_F(ServeKillTest, AKilledReplicaCostsPerfNoRequestAndComesBack) {
  SeptetRun perf(folder_, "perf",
                 {"perf", "-m", kModel, "-u", proxy_->endpoint().text(), "--concurrency-range", "6",
                  "-p", "1500", "-s", "0.001"});
  ASSERT_TRUE(eventually(kPatience, [&] { return answered(50); })) << perf.output();

  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(perf.process().poll_exit(), std::nullopt)
        << "perf ended before the replica was killed";
    ASSERT_TRUE(replicas_->send_signal("r" + std::to_string(i), SIGKILL).ok());
    ASSERT_TRUE(eventually(kPatience, [&] { return status(i).restarts == 1; }));
  }
  const auto ended = perf.wait(kPatience);
  const Result<Ok> ready = replicas_->wait_ready(kPatience, interrupted_);

  ASSERT_TRUE(ended.has_value()) << perf.output();
  EXPECT_THAT(perf.output(), HasSubstr("Throughput"));
  EXPECT_THAT(perf.output(), Not(HasSubstr("Failed requests")));
  EXPECT_THAT(perf.output(), Not(HasSubstr(" failed")));
  EXPECT_TRUE(ready.ok());
  EXPECT_EQ(status(2).restarts, 0u);
  EXPECT_EQ(proxy_->stats().replies_5xx, 0u);
}

}  // namespace
}  // namespace septet::test
