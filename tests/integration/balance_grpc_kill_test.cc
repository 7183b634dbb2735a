// Replica processes are killed with SIGKILL, and the set of replicas is changed, under gRPC load:
// no call fails.

#include "integration/kill_fixture.h"
#include "support/grpc_loop.h"

namespace septet::test {
namespace {

class GrpcKillTest : public KillFixture {
 protected:
  GrpcKillTest() : KillFixture(Speaks::kHttpAndGrpc) {}

  void run_load(std::function<void(std::size_t)> disturb) {
    const GrpcLoadResult result = run_grpc_load({.target = proxy_->endpoint(),
                                                 .connections = 2,
                                                 .calls_each = 8,
                                                 .calls = calls_wanted(),
                                                 .message = grpc_infer_message("m", 1024),
                                                 .give_up = seconds(280),
                                                 .on_ended = on_ended(std::move(disturb))});

    EXPECT_EQ(disturbed_, kDisturbances);
    EXPECT_EQ(result.failed, 0U) << result.last_message;
    EXPECT_EQ(result.latencies.size(), calls_wanted());
  }
};

TEST_F(GrpcKillTest, KilledReplicasCostNoCall) {
  start_proxy(upstreams_);

  run_load([this](std::size_t turn) { kill_one(turn); });

  EXPECT_GT(proxy_->stats().retries, 0U);
}

TEST_F(GrpcKillTest, ARollingChangeOfTheSetCostsNoCall) {
  start_proxy({upstreams_.begin(), upstreams_.begin() + 3});

  run_load([this](std::size_t turn) { leave_one_out(turn); });
}

}  // namespace
}  // namespace septet::test
