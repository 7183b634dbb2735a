// Loads through TLS: what only shows with many or large requests. The options' effects are in
// tests/integration/perf_tls_test.cc.

#include <gmock/gmock.h>

#include "measure/edge/load_generator.h"
#include "support/simulated_grpc_server.h"
#include "support/simulated_server.h"
#include "support/tls_front.h"

namespace septet::measure {
namespace {

using test::TlsFront;

class TlsLoadTest : public testing::Test {
 protected:
  TlsLoadTest() {
    rules_.requests_per_window = 10;
    rules_.window = seconds(100);
    rules_.fixed_windows = 1;
  }

  test::TlsFrontOptions identity() const {
    return {.identity = authority_.issue("server", "IP:127.0.0.1")};
  }

  LevelResult run(const TlsFront& front, Protocol protocol) {
    TlsOptions unverified;
    unverified.verify_peer = false;
    Target target;
    target.protocol = protocol;
    target.endpoints = {front.endpoint()};
    target.model = "simulated";
    target.tls =
        TlsContext::create(unverified, protocol == Protocol::kHttp ? TlsContext::Protocol::kHttp1
                                                                   : TlsContext::Protocol::kHttp2)
            .value();
    const auto generator = LoadGenerator::open(target, input_, rules_, {});
    EXPECT_TRUE(generator.ok()) << generator.error().text();
    return (*generator)->run_level({LoadMode::kConcurrency, 3}, stop_);
  }

  test::CertificateAuthority authority_;
  InputOptions input_;
  MeasurementRules rules_;
  std::atomic<bool> stop_ = false;
};

// More than any socket holds, so that writes stop and go on in the middle of a record.
TEST_F(TlsLoadTest, LargeRequestsArriveWhole) {
  test::ServerBehaviour behaviour;
  behaviour.input_shape = "[1000000]";
  behaviour.max_batch_size = 0;
  const test::SimulatedServer server(behaviour);
  const TlsFront front(server.endpoint(), identity());

  const LevelResult result = run(front, Protocol::kHttp);

  EXPECT_EQ(result.completed, 10U);
  EXPECT_EQ(result.failures.text(), "none") << result.last_failure;
  EXPECT_GT(server.last_request().size(), 4'000'000U);
}

TEST_F(TlsLoadTest, AConnectionThatTheServerClosesIsOpenedAnew) {
  test::ServerBehaviour behaviour;
  behaviour.reply = [](std::uint64_t /*index*/) { return test::Reply::kLastOne; };
  const test::SimulatedServer server(behaviour);
  const TlsFront front(server.endpoint(), identity());

  const LevelResult result = run(front, Protocol::kHttp);

  EXPECT_EQ(result.completed, 10U);
  EXPECT_EQ(result.failures.text(), "none") << result.last_failure;
}

TEST_F(TlsLoadTest, GrpcGoesThroughHttp2) {
  input_.batch_size = 8;
  const test::SimulatedGrpcServer server;
  const TlsFront front(server.endpoint(), identity());

  for (const Protocol protocol : {Protocol::kGrpc, Protocol::kGrpcStream}) {
    const LevelResult result = run(front, protocol);

    EXPECT_EQ(result.completed, 10U);
    EXPECT_EQ(result.failures.text(), "none") << result.last_failure;
    EXPECT_EQ(server.last_input().size(), 8U * 64);
  }
}

}  // namespace
}  // namespace septet::measure
