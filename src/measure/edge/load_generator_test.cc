#include "measure/edge/load_generator.h"

#include <gmock/gmock.h>

#include "support/simulated_server.h"

namespace septet::measure {
namespace {

using test::Reply;
using test::ServerBehaviour;
using test::SimulatedServer;

class LoadGeneratorTest : public testing::Test {
 protected:
  LoadGeneratorTest() {
    // Windows end by count and are always stable: a slow machine makes a test slow, not red.
    rules_.requests_per_window = 20;
    rules_.window = seconds(100);
    rules_.max_windows = 3;
    rules_.stability_percent = 1e9;
  }

  std::unique_ptr<LoadGenerator> open(const SimulatedServer& server) {
    Target target;
    target.endpoints = {server.endpoint()};
    target.model = "simulated";
    Result<std::unique_ptr<LoadGenerator>> generator =
        LoadGenerator::open(target, input_, rules_, options_);
    EXPECT_TRUE(generator.ok()) << generator.error().text();
    return *std::move(generator);
  }

  LevelResult run(const ServerBehaviour& behaviour, Level level) {
    SimulatedServer server(behaviour);
    return open(server)->run_level(level, stop_);
  }

  static Level concurrency(double value) { return {LoadMode::kConcurrency, value}; }

  InputOptions input_;
  MeasurementRules rules_;
  GeneratorOptions options_;
  std::atomic<bool> stop_ = false;
};

TEST_F(LoadGeneratorTest, ReadsWhatTheServerSaysAboutTheModel) {
  const SimulatedServer server({});

  const auto generator = open(server);

  const TargetDescription& description = generator->description();
  EXPECT_TRUE(description.has_statistics());
  EXPECT_EQ(description.model.max_batch_size, 8);
  EXPECT_THAT(description.model.inputs[0].shape, testing::ElementsAre(16));
}

TEST_F(LoadGeneratorTest, MeasuresAKnownServiceTime) {
  ServerBehaviour behaviour;
  behaviour.service_time = [](auto, auto&) { return milliseconds(5); };

  const LevelResult result = run(behaviour, concurrency(1));

  // Never faster than the service; how much slower is the machine's business.
  EXPECT_GE(result.latency.min_ns(), 5'000'000U);
  EXPECT_EQ(result.completed, 60U);
  EXPECT_LE(result.throughput, 200);
  EXPECT_NEAR(result.throughput,
              static_cast<double>(result.completed) / to_seconds(result.measured), 1e-6);
  EXPECT_EQ(result.failures.total(), 0U);
  EXPECT_TRUE(result.stable);
}

TEST_F(LoadGeneratorTest, KeepsJustSoManyRequestsInFlight) {
  ServerBehaviour behaviour;
  behaviour.replicas = 100;
  behaviour.service_time = [](auto, auto&) { return milliseconds(5); };
  rules_.requests_per_window = 130;
  SimulatedServer server(behaviour);

  const LevelResult result = open(server)->run_level(concurrency(13), stop_);

  EXPECT_EQ(server.most_at_once(), 13U);
  EXPECT_GT(result.in_flight_mean, 11);
  EXPECT_LT(result.in_flight_mean, 15);
}

TEST_F(LoadGeneratorTest, SendsTheRequestThatTheProtocolAsksFor) {
  input_.batch_size = 2;
  SimulatedServer server({});

  open(server)->run_level(concurrency(1), stop_);

  const std::string request = server.last_request();
  EXPECT_THAT(request, testing::StartsWith("POST /v2/models/simulated/infer HTTP/1.1\r\nHost: "));
  EXPECT_THAT(request, testing::HasSubstr("Inference-Header-Content-Length: "));
  EXPECT_THAT(request,
              testing::HasSubstr(R"("shape":[2,16],"parameters":{"binary_data_size":128})"));
  EXPECT_THAT(request, testing::HasSubstr(R"({"name":"OUT","parameters":{"binary_data":true}})"));
}

TEST_F(LoadGeneratorTest, TakesTheServersStatisticsOverTheMergedWindows) {
  ServerBehaviour behaviour;
  behaviour.service_time = [](auto, auto&) { return milliseconds(1); };

  const LevelResult result = run(behaviour, concurrency(2));

  ASSERT_TRUE(result.has_server_statistics);
  EXPECT_EQ(result.server.queue.mean_us(), 1U);
  EXPECT_EQ(result.server.compute_infer.mean_us(), 90U);
  EXPECT_GT(result.server.inference_count, 0U);
}

TEST_F(LoadGeneratorTest, OneFailedRequestIsCountedAndNotFatal) {
  ServerBehaviour behaviour;
  behaviour.service_time = [](auto, auto&) { return milliseconds(1); };
  behaviour.reply = [](std::uint64_t index) {
    return index == 10 ? Reply::kRefuse : Reply::kAnswer;
  };

  const LevelResult result = run(behaviour, concurrency(1));

  EXPECT_EQ(result.failures.of(FailureKind::kRefused), 1U);
  EXPECT_EQ(result.failures.total(), 1U);
  EXPECT_GT(result.completed, 20U);
  EXPECT_EQ(result.latency.count(), result.completed);
  EXPECT_THAT(result.last_failure, testing::HasSubstr("503: simulated refusal"));
}

struct BrokenReply {
  Reply reply;
  FailureKind kind;
};

class EveryBrokenReply : public LoadGeneratorTest,
                         public testing::WithParamInterface<BrokenReply> {};

TEST_P(EveryBrokenReply, IsCountedByKindAndTheLoadGoesOn) {
  ServerBehaviour behaviour;
  behaviour.service_time = [](auto, auto&) { return milliseconds(1); };
  behaviour.reply = [](std::uint64_t index) {
    return index == 5 ? GetParam().reply : Reply::kAnswer;
  };
  rules_.request_timeout = seconds(1);

  const LevelResult result = run(behaviour, concurrency(1));

  EXPECT_EQ(result.failures.of(GetParam().kind), 1U) << result.failures.text();
  EXPECT_EQ(result.completed, 60U);
}

INSTANTIATE_TEST_SUITE_P(LoadGenerator, EveryBrokenReply,
                         testing::Values(BrokenReply{Reply::kRefuse, FailureKind::kRefused},
                                         BrokenReply{Reply::kReject, FailureKind::kRejected},
                                         BrokenReply{Reply::kFail, FailureKind::kServer},
                                         BrokenReply{Reply::kReset, FailureKind::kReset},
                                         BrokenReply{Reply::kHalf, FailureKind::kReset},
                                         BrokenReply{Reply::kShortBody, FailureKind::kReset},
                                         BrokenReply{Reply::kGarbage, FailureKind::kProtocol},
                                         BrokenReply{Reply::kSilence, FailureKind::kTimeout}),
                         [](const auto& test) { return "number" + std::to_string(test.index); });

TEST_F(LoadGeneratorTest, ChunkedAnswersAndClosedConnectionsAreNoFailures) {
  ServerBehaviour behaviour;
  behaviour.reply = [](std::uint64_t index) {
    return index % 3 == 0 ? Reply::kChunked : index % 3 == 1 ? Reply::kLastOne : Reply::kAnswer;
  };

  const LevelResult result = run(behaviour, concurrency(3));

  EXPECT_EQ(result.failures.text(), "none");
  EXPECT_GT(result.completed, 10U);
}

TEST_F(LoadGeneratorTest, AServerThatGoesAwayLeavesARowOfFailures) {
  rules_.requests_per_window.reset();
  rules_.window = milliseconds(50);
  auto server = std::make_unique<SimulatedServer>(ServerBehaviour{});
  const auto generator = open(*server);
  server.reset();

  const LevelResult result = generator->run_level(concurrency(2), stop_);

  EXPECT_EQ(result.completed, 0U);
  EXPECT_FALSE(result.stable);
  EXPECT_GT(result.failures.of(FailureKind::kConnect), 0U);
  EXPECT_LT(result.failures.total(), 100U);  // it backs off
}

TEST_F(LoadGeneratorTest, AnUnstableLevelIsReportedAndTheSweepGoesOn) {
  rules_.stability_percent = 1e-9;
  SimulatedServer server({});
  const auto generator = open(server);
  std::vector<double> levels;

  run_sweep(*generator, LevelSweep::linear(LoadMode::kConcurrency, 1, 3, 1), stop_,
            [&](const LevelResult& result) {
              EXPECT_FALSE(result.stable);
              EXPECT_GT(result.throughput, 0);
              levels.push_back(result.level.value);
            });

  EXPECT_THAT(levels, testing::ElementsAre(1, 2, 3));
}

TEST_F(LoadGeneratorTest, ASweepEndsAtTheLatencyLimit) {
  rules_.latency_limit = milliseconds(500);  // 51 requests in flight take 51 x 20 ms
  ServerBehaviour behaviour;
  behaviour.service_time = [](auto, auto&) { return milliseconds(20); };
  SimulatedServer server(behaviour);
  const auto generator = open(server);
  std::vector<bool> over;

  run_sweep(*generator, LevelSweep::linear(LoadMode::kConcurrency, 1, 150, 50), stop_,
            [&](const LevelResult& result) { over.push_back(result.over_limit); });

  EXPECT_THAT(over, testing::ElementsAre(false, true));
}

TEST_F(LoadGeneratorTest, AStopKeepsWhatWasMeasured) {
  rules_.requests_per_window = 1'000'000;
  ServerBehaviour behaviour;
  behaviour.service_time = [](auto, auto&) { return milliseconds(1); };
  behaviour.reply = [this](std::uint64_t index) {
    stop_ = index >= 30;
    return Reply::kAnswer;
  };
  SimulatedServer server(behaviour);
  const auto generator = open(server);
  std::vector<LevelResult> results;

  run_sweep(*generator, LevelSweep::linear(LoadMode::kConcurrency, 1, 9, 1), stop_,
            [&](const LevelResult& result) { results.push_back(result); });

  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0].interrupted);
  EXPECT_GE(results[0].completed, 29U);
}

TEST_F(LoadGeneratorTest, CountWindowsEndWithTheirLastRequest) {
  rules_.requests_per_window = 7;
  ServerBehaviour behaviour;
  behaviour.service_time = [](auto, auto&) { return milliseconds(1); };

  const LevelResult result = run(behaviour, concurrency(1));

  EXPECT_EQ(result.completed, 21U);
}

TEST_F(LoadGeneratorTest, AdaptiveWindowsStopWhenTheyAreSureEnough) {
  rules_ = MeasurementRules::adaptive();
  rules_.window = milliseconds(100);
  rules_.confidence_percent = 1e9;
  ServerBehaviour behaviour;
  behaviour.service_time = [](auto, auto&) { return milliseconds(1); };

  const LevelResult result = run(behaviour, concurrency(40));

  EXPECT_TRUE(result.stable);
  EXPECT_EQ(result.windows.size(), 7U);  // six, and the first that is left out
  EXPECT_FALSE(result.windows[0].merged);
  for (const WindowResult& window : result.windows) {
    EXPECT_GE(window.completed, 40U);
  }
  EXPECT_TRUE(result.throughput_interval.has_value());
}

TEST_F(LoadGeneratorTest, SequencesHaveOneRequestInFlightEachAndAreCounted) {
  ServerBehaviour behaviour;
  behaviour.is_sequence_model = true;
  behaviour.replicas = 100;
  behaviour.service_time = [](auto, auto&) { return milliseconds(1); };
  options_.sequence.length = 4;
  options_.sequence.length_variation_percent = 0;
  SimulatedServer server(behaviour);

  const LevelResult result = open(server)->run_level(concurrency(3), stop_);

  EXPECT_LE(server.most_at_once(), 3U);
  EXPECT_NEAR(static_cast<double>(result.sequences), static_cast<double>(result.completed) / 4, 3);
  EXPECT_THAT(server.last_request(), testing::HasSubstr(R"("sequence_id":)"));
}

TEST_F(LoadGeneratorTest, SharedMemoryIsRegisteredUsedAndGivenBack) {
  options_.shared_memory = true;
  SimulatedServer server({});

  {
    const auto generator = open(server);
    EXPECT_THAT(server.last_registration(), testing::HasSubstr("/register"));
    generator->run_level(concurrency(1), stop_);
  }

  EXPECT_THAT(server.last_request(), testing::HasSubstr("\"shared_memory_region\":\"septet_"));
  EXPECT_THAT(server.last_request(), testing::EndsWith("]}"));  // no tensor behind the JSON
  EXPECT_THAT(server.last_registration(), testing::HasSubstr("/unregister"));
}

TEST_F(LoadGeneratorTest, SeveralServersShareTheLoadAndAddUpTheirStatistics) {
  ServerBehaviour behaviour;
  behaviour.service_time = [](auto, auto&) { return milliseconds(2); };
  SimulatedServer one(behaviour);
  SimulatedServer two(behaviour);
  Target target;
  target.endpoints = {one.endpoint(), two.endpoint()};
  target.model = "simulated";

  const LevelResult result =
      (*LoadGenerator::open(target, input_, rules_, options_))->run_level(concurrency(2), stop_);

  EXPECT_GT(one.requests(), 0U);
  EXPECT_GT(two.requests(), 0U);
  EXPECT_TRUE(result.has_server_statistics);
}

TEST_F(LoadGeneratorTest, NothingThatAnswersIsSaidClearly) {
  os::Endpoint closed;
  {
    const SimulatedServer server({});
    closed = server.endpoint();
  }
  Target target;
  target.endpoints = {closed};
  target.model = "simulated";

  const auto generator = LoadGenerator::open(target, {}, {}, {});

  ASSERT_FALSE(generator.ok());
  EXPECT_EQ(generator.error().kind, ErrorKind::kPrecondition);
  EXPECT_THAT(generator.error().text(), testing::HasSubstr("septet serve"));
}

TEST_F(LoadGeneratorTest, AnUnknownModelIsNotFound) {
  ServerBehaviour behaviour;
  behaviour.model_exists = false;
  const SimulatedServer server(behaviour);
  Target target;
  target.endpoints = {server.endpoint()};
  target.model = "simulated";

  const auto generator = LoadGenerator::open(target, {}, {}, {});

  ASSERT_FALSE(generator.ok());
  EXPECT_EQ(generator.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(generator.error().message, testing::HasSubstr("unknown model"));
}

}  // namespace
}  // namespace septet::measure
