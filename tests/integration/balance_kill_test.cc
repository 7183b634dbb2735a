// Replica processes are killed with SIGKILL, and the set of replicas is changed, under load: no
// request fails.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>

#include "balance/edge/proxy.h"
#include "os/process.h"
#include "support/closed_loop.h"

namespace septet {
namespace {

constexpr std::uint64_t kRequests = 100'000;
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
    options.kill_with_parent = false;  // the thread that starts it ends before the test does
    Result<os::Process> process = os::Process::start(options);
    ASSERT_TRUE(process.ok()) << process.error().text();
    processes_[index].emplace(std::move(*process));
  }
  void kill_replica(std::size_t index) {
    processes_[index]->send_signal(SIGKILL);
    ASSERT_TRUE(processes_[index]->wait(seconds(10)));
  }
  // Waits until so many requests have been answered; false when the load is over.
  bool reached(std::uint64_t requests) const {
    while (proxy_->stats().requests < requests) {
      if (over_) {
        return false;
      }
      std::this_thread::yield();
    }
    return true;
  }
  void start_proxy(std::vector<balance::Upstream> upstreams) {
    balance::ProxyOptions options;
    options.listen = {os::Endpoint{"127.0.0.1", 0, ""}};
    auto proxy = balance::Proxy::start(options, std::move(upstreams));
    ASSERT_TRUE(proxy.ok()) << proxy.error().text();
    proxy_ = std::move(*proxy);
  }
  test::ClosedLoopResult load() {
    test::ClosedLoopResult result = test::run_closed_loop(
        {proxy_->endpoint(), 16, kRequests, test::infer_request("m", 1024), seconds(280)});
    over_ = true;
    return result;
  }

  std::array<std::optional<os::Process>, 4> processes_;
  std::vector<balance::Upstream> upstreams_;
  std::unique_ptr<balance::Proxy> proxy_;
  std::atomic<bool> over_ = false;
};

TEST_F(KillTest, KilledReplicasCostNoRequest) {
  start_proxy(upstreams_);
  std::uint64_t kills = 0;
  std::thread killer([&] {
    while (kills < kKills && reached((kills + 1) * kRequests / (kKills + 1))) {
      const std::size_t victim = kills++ % processes_.size();
      kill_replica(victim);
      start_replica(victim);
    }
  });

  const test::ClosedLoopResult result = load();
  killer.join();

  EXPECT_EQ(result.failed, 0U);
  EXPECT_EQ(result.statuses.at(200), kRequests);
  EXPECT_EQ(kills, kKills);
  EXPECT_GT(proxy_->stats().retries, 0U);
}

TEST_F(KillTest, ARollingChangeOfTheSetCostsNoRequest) {
  start_proxy({upstreams_.begin(), upstreams_.begin() + 3});
  std::uint64_t changes = 0;
  std::thread roller([&] {
    while (changes < kKills && reached((changes + 1) * kRequests / (kKills + 1))) {
      std::vector<balance::Upstream> set = upstreams_;
      set.erase(set.begin() + static_cast<std::ptrdiff_t>(changes++ % set.size()));
      ASSERT_TRUE(proxy_->set_upstreams(set).ok());
    }
  });

  const test::ClosedLoopResult result = load();
  roller.join();

  EXPECT_EQ(result.failed, 0U);
  EXPECT_EQ(result.statuses.at(200), kRequests);
  EXPECT_EQ(changes, kKills);
}

}  // namespace
}  // namespace septet
