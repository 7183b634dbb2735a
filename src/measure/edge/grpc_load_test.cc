// Loads over gRPC, against a server made with the official C++ implementation.

#include <gmock/gmock.h>

#include "measure/edge/grpc_client.h"
#include "measure/edge/load_generator.h"
#include "support/simulated_grpc_server.h"
#include "support/simulated_server.h"

namespace septet::measure {
namespace {

using test::SimulatedGrpcServer;

class GrpcLoadTest : public testing::TestWithParam<Protocol> {
 protected:
  GrpcLoadTest() {
    // Windows end by count: a slow machine makes a test slow, not red.
    rules_.requests_per_window = 10;
    rules_.window = seconds(100);
    rules_.fixed_windows = 3;
  }

  Result<std::unique_ptr<LoadGenerator>> open(const os::Endpoint& endpoint) {
    Target target;
    target.protocol = GetParam();
    target.endpoints = {endpoint};
    target.model = "simulated";
    target.headers = {{"X-Team", "blue"}};
    return LoadGenerator::open(target, input_, rules_, options_);
  }

  InputOptions input_;
  MeasurementRules rules_;
  GeneratorOptions options_;
  std::atomic<bool> stop_ = false;
};

TEST_P(GrpcLoadTest, MeasuresAndTakesTheServersStatistics) {
  const SimulatedGrpcServer server;
  const auto generator = open(server.endpoint());
  ASSERT_TRUE(generator.ok()) << generator.error().text();

  const LevelResult result = (*generator)->run_level({LoadMode::kConcurrency, 3}, stop_);

  EXPECT_EQ((*generator)->description().model.max_batch_size, 8);
  EXPECT_EQ(result.completed, 30U);
  EXPECT_EQ(result.failures.text(), "none") << result.last_failure;
  ASSERT_TRUE(result.has_server_statistics);
  EXPECT_EQ(result.server.queue.mean_us(), 3U);
  EXPECT_EQ(server.last_input().size(), 64U);
  EXPECT_EQ(server.last_team(), "blue");
}

TEST_P(GrpcLoadTest, AUnaryCallIsMadeForEachRequestAndAStreamForEachConnection) {
  const SimulatedGrpcServer server;

  (*open(server.endpoint()))->run_level({LoadMode::kConcurrency, 3}, stop_);

  if (GetParam() == Protocol::kGrpc) {
    // A call that the end of the level broke off has no request.
    EXPECT_GE(server.calls(), server.requests());
    EXPECT_LE(server.calls(), server.requests() + 3);
  } else {
    EXPECT_EQ(server.calls(), 3U);
  }
}

TEST_P(GrpcLoadTest, AFailedRequestIsCountedAndNotFatal) {
  const SimulatedGrpcServer server([](std::uint64_t index) { return index == 5; });

  const LevelResult result =
      (*open(server.endpoint()))->run_level({LoadMode::kConcurrency, 1}, stop_);

  EXPECT_EQ(result.failures.total(), 1U) << result.failures.text();
  EXPECT_THAT(result.last_failure, testing::HasSubstr("simulated refusal"));
  EXPECT_EQ(result.completed, 30U);
}

TEST_P(GrpcLoadTest, LargeTensorsArriveWhole) {
  input_.batch_size = 8;
  const SimulatedGrpcServer server;

  const LevelResult result =
      (*open(server.endpoint()))->run_level({LoadMode::kConcurrency, 2}, stop_);

  EXPECT_EQ(result.failures.total(), 0U) << result.last_failure;
  EXPECT_EQ(server.last_input().size(), 8U * 64);
}

TEST_P(GrpcLoadTest, AServerThatSpeaksAnotherProtocolIsSaidClearly) {
  const test::SimulatedServer http_only({});

  const auto generator = open(http_only.endpoint());

  ASSERT_FALSE(generator.ok());
  EXPECT_THAT(generator.error().text(), testing::HasSubstr("gRPC port"));
}

TEST_P(GrpcLoadTest, CompressedRequestsAreUnderstood) {
  for (const auto compression : {MessageCompression::kGzip, MessageCompression::kDeflate}) {
    const SimulatedGrpcServer server;
    options_.grpc_compression = compression;

    const LevelResult result =
        (*open(server.endpoint()))->run_level({LoadMode::kConcurrency, 2}, stop_);

    EXPECT_EQ(result.completed, 30U);
    EXPECT_EQ(server.last_input().size(), 64U);
    EXPECT_EQ(result.failures.total(), 0U) << result.last_failure;
  }
}

TEST_P(GrpcLoadTest, TensorsMayLieInSharedMemory) {
  const SimulatedGrpcServer server;
  options_.shared_memory = true;
  {
    const auto generator = open(server.endpoint());
    ASSERT_TRUE(generator.ok()) << generator.error().text();

    const LevelResult result = (*generator)->run_level({LoadMode::kConcurrency, 2}, stop_);

    EXPECT_EQ(result.completed, 30U);
    EXPECT_EQ(server.regions(), 2U);  // an input and an output
    EXPECT_THAT(server.last_region(), testing::HasSubstr("_IN_0_0"));
    EXPECT_EQ(server.last_input(), "");
  }
  EXPECT_EQ(server.regions(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Protocols, GrpcLoadTest,
                         testing::Values(Protocol::kGrpc, Protocol::kGrpcStream),
                         [](const auto& test) { return test.index == 0 ? "unary" : "stream"; });

}  // namespace
}  // namespace septet::measure
