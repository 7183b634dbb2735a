// Replica processes are killed with SIGKILL, and the set of replicas is changed, under load: no
// request fails.

#include "integration/kill_fixture.h"
#include "support/closed_loop.h"

namespace septet::test {
namespace {

class KillTest : public KillFixture {
 protected:
  KillTest() : KillFixture(Speaks::kHttp) {}

  void run_load(std::function<void(std::size_t)> disturb, std::uint64_t calls = calls_wanted(),
                std::size_t body_bytes = 1024) {
    const ClosedLoopResult result =
        run_closed_loop({proxy_->endpoint(), 16, calls, infer_request("m", body_bytes),
                         seconds(280), on_ended(std::move(disturb), calls)});

    EXPECT_EQ(disturbed_, kDisturbances);
    EXPECT_EQ(result.failed, 0U);
    EXPECT_EQ(result.latencies.size(), calls);
  }
};

TEST_F(KillTest, KilledReplicasCostNoRequest) {
  start_proxy(upstreams_);

  run_load([this](std::size_t turn) { kill_one(turn); });

  EXPECT_GT(proxy_->stats().retries, 0U);
}

// Its slot of shared memory stays with the proxy, which names it to another replica.
TEST_F(KillTest, KilledReplicasCostNoRequestWhoseBodyLiesInASlot) {
  start_proxy(upstreams_);
  const std::uint64_t calls = calls_wanted() / 25;

  run_load([this](std::size_t turn) { kill_one(turn); }, calls, 602'112);

  const balance::ProxyStats stats = proxy_->stats();
  EXPECT_GT(stats.retries, 0U);
  EXPECT_EQ(stats.slots_used, 0U);
  std::uint64_t in_slots = 0;
  for (const balance::UpstreamStats& upstream : stats.upstreams) {
    in_slots += upstream.slot_requests;
  }
  EXPECT_GT(in_slots, calls / 2);
}

TEST_F(KillTest, ARollingChangeOfTheSetCostsNoRequest) {
  start_proxy({upstreams_.begin(), upstreams_.begin() + 3});

  run_load([this](std::size_t turn) { leave_one_out(turn); });
}

}  // namespace
}  // namespace septet::test
