// Replica processes are killed with SIGKILL, and the set of replicas is changed, under load: no
// request fails.

#include "integration/kill_fixture.h"
#include "support/closed_loop.h"

namespace septet::test {
namespace {

class KillTest : public KillFixture {
 protected:
  KillTest() : KillFixture(Speaks::kHttp) {}

  void run_load(std::function<void(std::size_t)> disturb) {
    const ClosedLoopResult result =
        run_closed_loop({proxy_->endpoint(), 16, calls_wanted(), infer_request("m", 1024),
                         seconds(280), on_ended(std::move(disturb))});

    EXPECT_EQ(disturbed_, kDisturbances);
    EXPECT_EQ(result.failed, 0U);
    EXPECT_EQ(result.latencies.size(), calls_wanted());
  }
};

TEST_F(KillTest, KilledReplicasCostNoRequest) {
  start_proxy(upstreams_);

  run_load([this](std::size_t turn) { kill_one(turn); });

  EXPECT_GT(proxy_->stats().retries, 0U);
}

TEST_F(KillTest, ARollingChangeOfTheSetCostsNoRequest) {
  start_proxy({upstreams_.begin(), upstreams_.begin() + 3});

  run_load([this](std::size_t turn) { leave_one_out(turn); });
}

}  // namespace
}  // namespace septet::test
