// KillFixture: replica processes and a proxy before them, to be disturbed under load. For tests
// only.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "balance/edge/proxy.h"
#include "base/text.h"
#include "os/process.h"

namespace septet::test {

enum class Speaks { kHttp, kHttpAndGrpc };

class KillFixture : public testing::Test {
 protected:
  static constexpr std::uint64_t kDisturbances = 40;

  // SEPTET_KILL_CALLS runs the same for longer.
  static std::uint64_t calls_wanted() {
    const char* const text = std::getenv("SEPTET_KILL_CALLS");
    return text == nullptr ? 100'000 : parse_uint(text).value_or(100'000);
  }

  explicit KillFixture(Speaks speaks) : speaks_(speaks) {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      const std::string path =
          testing::TempDir() + "/septet_kill_" + std::to_string(getpid()) + "_" + std::to_string(i);
      upstreams_.push_back({"r" + std::to_string(i), os::Endpoint{"", 0, path + "h"}, {}, {}});
      if (speaks == Speaks::kHttpAndGrpc) {
        upstreams_.back().grpc = os::Endpoint{"", 0, path + "g"};
      }
      start_replica(i);
    }
  }
  ~KillFixture() override {
    for (const balance::Upstream& upstream : upstreams_) {
      ::unlink(upstream.endpoint.unix_path.c_str());
      if (upstream.grpc) {
        ::unlink(upstream.grpc->unix_path.c_str());
      }
    }
  }

  void start_proxy(std::vector<balance::Upstream> upstreams) {
    balance::ProxyOptions options;
    options.listen = {os::Endpoint{"127.0.0.1", 0, ""}};
    auto proxy = balance::Proxy::start(options, std::move(upstreams));
    ASSERT_TRUE(proxy.ok()) << proxy.error().text();
    proxy_ = std::move(*proxy);
  }
  // To be called after each request with how many have ended: disturbs kDisturbances times on the
  // way, evenly, with other requests in flight.
  std::function<void(std::uint64_t)> on_ended(std::function<void(std::size_t)> disturb,
                                              std::uint64_t calls = calls_wanted()) {
    return [this, disturb = std::move(disturb), calls](std::uint64_t ended) {
      if (disturbed_ < kDisturbances && ended == (disturbed_ + 1) * calls / (kDisturbances + 1)) {
        disturb(disturbed_++);
      }
    };
  }
  // The two disturbances: one replica's process is killed and started anew; another set of three.
  void kill_one(std::size_t turn) {
    const std::size_t index = turn % processes_.size();
    processes_[index]->send_signal(SIGKILL);
    ASSERT_TRUE(processes_[index]->wait(seconds(10)));
    start_replica(index);
  }
  void leave_one_out(std::size_t turn) {
    std::vector<balance::Upstream> set = upstreams_;
    set.erase(set.begin() + static_cast<std::ptrdiff_t>(turn % set.size()));
    EXPECT_TRUE(proxy_->set_upstreams(set).ok());
  }

  std::vector<balance::Upstream> upstreams_;
  std::unique_ptr<balance::Proxy> proxy_;
  std::uint64_t disturbed_ = 0;

 private:
  // The stubs of SEPTET_BIN, where it is set, so that the programs can be carried elsewhere.
  std::string stub(const std::string& name) const {
    const char* const folder = std::getenv("SEPTET_BIN");
    return std::string(folder == nullptr ? STUB_FOLDER : folder) + "/" + name;
  }
  void start_replica(std::size_t index) {
    const balance::Upstream& upstream = upstreams_[index];
    os::ProcessOptions options;
    if (speaks_ == Speaks::kHttpAndGrpc) {
      options.arguments = {stub("stub_grpc_replica"), upstream.endpoint.text(),
                           upstream.grpc->text(), "256"};
    } else {
      options.arguments = {stub("stub_replica"), upstream.endpoint.text(), "256", "slots"};
    }
    Result<os::Process> process = os::Process::start(options);
    ASSERT_TRUE(process.ok()) << process.error().text();
    processes_[index].emplace(std::move(*process));
  }

  Speaks speaks_;
  std::array<std::optional<os::Process>, 4> processes_;
};

}  // namespace septet::test
