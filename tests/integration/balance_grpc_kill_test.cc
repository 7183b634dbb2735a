// Replica processes are killed with SIGKILL, and the set of replicas is changed, under gRPC load:
// no call fails.

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "balance/edge/proxy.h"
#include "base/text.h"
#include "os/process.h"
#include "support/grpc_loop.h"

namespace septet {
namespace {

// SEPTET_KILL_CALLS runs the same for longer.
std::uint64_t calls_wanted() {
  const char* const text = std::getenv("SEPTET_KILL_CALLS");
  return text == nullptr ? 100'000 : parse_uint(text).value_or(100'000);
}
constexpr std::uint64_t kKills = 40;

class GrpcKillTest : public testing::Test {
 protected:
  GrpcKillTest() {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      const std::string path = testing::TempDir() + "/septet_grpc_kill_" +
                               std::to_string(getpid()) + "_" + std::to_string(i);
      upstreams_.push_back({.name = "r" + std::to_string(i),
                            .endpoint = {"", 0, path + "_http"},
                            .models = {},
                            .grpc = os::Endpoint{"", 0, path + "_grpc"}});
      start_replica(i);
    }
  }
  ~GrpcKillTest() override {
    for (const balance::Upstream& upstream : upstreams_) {
      ::unlink(upstream.endpoint.unix_path.c_str());
      ::unlink(upstream.grpc->unix_path.c_str());
    }
  }

  void start_replica(std::size_t index) {
    os::ProcessOptions options;
    options.arguments = {STUB_GRPC_REPLICA, upstreams_[index].endpoint.text(),
                         upstreams_[index].grpc->text(), "256"};
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
  // Runs the load and calls back kKills times on the way, with other calls in flight.
  test::GrpcLoadResult load(const std::function<void(std::size_t)>& disturb) {
    const std::uint64_t calls = calls_wanted();
    std::size_t disturbed = 0;
    const auto on_ended = [&](std::uint64_t ended) {
      if (disturbed < kKills && ended == (disturbed + 1) * calls / (kKills + 1)) {
        disturb(disturbed++);
      }
    };
    test::GrpcLoadResult result =
        test::run_grpc_load({.target = proxy_->endpoint(),
                             .connections = 2,
                             .calls_each = 8,
                             .calls = calls,
                             .message = test::grpc_infer_message("m", 1024),
                             .give_up = seconds(280),
                             .on_ended = on_ended});
    EXPECT_EQ(disturbed, kKills);
    EXPECT_EQ(result.failed, 0U) << result.last_message;
    EXPECT_EQ(result.latencies.size(), calls);
    return result;
  }

  std::array<std::optional<os::Process>, 4> processes_;
  std::vector<balance::Upstream> upstreams_;
  std::unique_ptr<balance::Proxy> proxy_;
};

TEST_F(GrpcKillTest, KilledReplicasCostNoCall) {
  start_proxy(upstreams_);

  load([this](std::size_t turn) {
    kill_replica(turn % processes_.size());
    start_replica(turn % processes_.size());
  });

  EXPECT_GT(proxy_->stats().retries, 0U);
}

TEST_F(GrpcKillTest, ARollingChangeOfTheSetCostsNoCall) {
  start_proxy({upstreams_.begin(), upstreams_.begin() + 3});

  load([this](std::size_t turn) {
    std::vector<balance::Upstream> set = upstreams_;
    set.erase(set.begin() + static_cast<std::ptrdiff_t>(turn % set.size()));
    EXPECT_TRUE(proxy_->set_upstreams(set).ok());
  });
}

}  // namespace
}  // namespace septet
