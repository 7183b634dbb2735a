// Replica processes are killed with SIGKILL, and the set of replicas is changed, under load: no
// request fails.

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>

#include "balance/edge/proxy.h"
#include "base/text.h"
#include "os/process.h"
#include "support/closed_loop.h"

namespace septet {
namespace {

// SEPTET_KILL_CALLS runs the same for longer.
std::uint64_t requests_wanted() {
  const char* const text = std::getenv("SEPTET_KILL_CALLS");
  return text == nullptr ? 100'000 : parse_uint(text).value_or(100'000);
}
constexpr std::uint64_t kKills = 40;

class KillTest : public testing::Test {
 protected:
  KillTest() {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      const std::string path =
          testing::TempDir() + "/septet_kill_" + std::to_string(getpid()) + "_" + std::to_string(i);
      upstreams_.push_back({"r" + std::to_string(i), os::Endpoint{"", 0, path}, {}});
      start_replica(i);
    }
  }
  ~KillTest() override {
    for (const balance::Upstream& upstream : upstreams_) {
      ::unlink(upstream.endpoint.unix_path.c_str());
    }
  }

  void start_replica(std::size_t index) {
    os::ProcessOptions options;
    options.arguments = {STUB_REPLICA, upstreams_[index].endpoint.text(), "256"};
    Result<os::Process> process = os::Process::start(options);
    ASSERT_TRUE(process.ok()) << process.error().text();
    processes_[index].emplace(std::move(*process));
  }
  void kill_replica(std::size_t index) {
    processes_[index]->send_signal(SIGKILL);
    ASSERT_TRUE(processes_[index]->wait(seconds(10)));
  }
  void start_proxy(std::vector<balance::Upstream> upstreams) {
    balance::ProxyOptions options;
    options.listen = {os::Endpoint{"127.0.0.1", 0, ""}};
    auto proxy = balance::Proxy::start(options, std::move(upstreams));
    ASSERT_TRUE(proxy.ok()) << proxy.error().text();
    proxy_ = std::move(*proxy);
  }
  // Runs the load and calls back kKills times on the way, with other requests in flight.
  test::ClosedLoopResult load(const std::function<void(std::size_t)>& disturb) {
    const std::uint64_t requests = requests_wanted();
    std::size_t disturbed = 0;
    const auto on_ended = [&](std::uint64_t ended) {
      if (disturbed < kKills && ended == (disturbed + 1) * requests / (kKills + 1)) {
        disturb(disturbed++);
      }
    };
    const test::ClosedLoopResult result = test::run_closed_loop(
        {proxy_->endpoint(), 16, requests, test::infer_request("m", 1024), seconds(280), on_ended});
    EXPECT_EQ(disturbed, kKills);
    return result;
  }

  std::array<std::optional<os::Process>, 4> processes_;
  std::vector<balance::Upstream> upstreams_;
  std::unique_ptr<balance::Proxy> proxy_;
};

TEST_F(KillTest, KilledReplicasCostNoRequest) {
  start_proxy(upstreams_);

  const test::ClosedLoopResult result = load([this](std::size_t turn) {
    kill_replica(turn % processes_.size());
    start_replica(turn % processes_.size());
  });

  EXPECT_EQ(result.failed, 0U);
  EXPECT_EQ(result.latencies.size(), requests_wanted());
  EXPECT_GT(proxy_->stats().retries, 0U);
}

TEST_F(KillTest, ARollingChangeOfTheSetCostsNoRequest) {
  start_proxy({upstreams_.begin(), upstreams_.begin() + 3});

  const test::ClosedLoopResult result = load([this](std::size_t turn) {
    std::vector<balance::Upstream> set = upstreams_;
    set.erase(set.begin() + static_cast<std::ptrdiff_t>(turn % set.size()));
    EXPECT_TRUE(proxy_->set_upstreams(set).ok());
  });

  EXPECT_EQ(result.failed, 0U);
  EXPECT_EQ(result.latencies.size(), requests_wanted());
}

}  // namespace
}  // namespace septet
