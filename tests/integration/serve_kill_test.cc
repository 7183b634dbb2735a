// kill -9 of a replica while septet perf measures through the balancer, with small bodies and with
// large ones in slots of shared memory: no request fails, and the supervisor brings the replica
// back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "agent/edge/replica_set.h"
#include "balance/edge/proxy.h"
#include "integration/septet_run.h"

namespace septet::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Duration kPatience = seconds(240);
constexpr int kReplicas = 3;

// An engine that takes a picture of 602,112 bytes and little time.
constexpr const char* kPicture = R"(backend: "timed"
input { name: "data_0" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ 1000 ] }
parameters { key: "service_times" value { string_value: "times.csv" } }
parameters { key: "slice" value { string_value: "1g.5gb" } }
)";

class ServeKillTest : public ::testing::Test {
 protected:
  // Replicas that serve the model, and a balancer before them.
  void start(const std::string& repository, const std::string& model, const std::string& listen,
             balance::ProxyOptions options = {}) {
    replicas_ = *agent::ReplicaSet::start({});
    std::vector<balance::Upstream> upstreams;
    for (int i = 0; i < kReplicas; ++i) {
      const std::string name = "r" + std::to_string(i);
      const os::Endpoint endpoint = *os::parse_endpoint("unix:" + (folder_ / name), 0);
      const os::Endpoint grpc = *os::parse_endpoint("unix:" + (folder_ / (name + ".grpc")), 0);
      agent::ReplicaSpec spec;
      spec.name = name;
      spec.process.arguments = {SEPTET_PROGRAM,  "serve",     "--model-repository", repository,
                                "--model",       model,       "--listen",           endpoint.text(),
                                "--grpc-listen", grpc.text(), "--exit-with-parent"};
      spec.endpoint = endpoint;
      spec.health_target = "/v2/models/" + model + "/ready";
      spec.log_path = folder_ / (name + ".log");
      ASSERT_TRUE(replicas_->add(spec).ok());
      upstreams.push_back({.name = name, .endpoint = endpoint, .models = {}, .grpc = grpc});
    }
    const Result<Ok> ready = replicas_->wait_ready(kPatience, interrupted_);
    ASSERT_TRUE(ready.ok()) << ready.error().text() << read_text(folder_ / "r0.log");
    options.listen = {*os::parse_endpoint(listen, 0)};
    auto proxy = balance::Proxy::start(options, upstreams);
    ASSERT_TRUE(proxy.ok()) << proxy.error().text();
    proxy_ = *std::move(proxy);
  }

  // One of them is killed while perf sends pictures; then each has read some that way.
  void kill_one_while_pictures_go_by(const std::string& transport,
                                     const balance::ProxyOptions& options,
                                     const std::string& protocol = "http");
  bool answered(std::uint64_t requests) const { return proxy_->stats().replies_2xx >= requests; }
  agent::ReplicaStatus status(int index) const {
    return replicas_->status()[static_cast<std::size_t>(index)];
  }

  TestFolder folder_;
  std::atomic<bool> interrupted_ = false;
  std::unique_ptr<agent::ReplicaSet> replicas_;
  std::unique_ptr<balance::Proxy> proxy_;
};

TEST_F(ServeKillTest, AKilledReplicaCostsPerfNoRequestAndComesBack) {
  if (const auto reason = cannot_serve("simple")) {
    GTEST_SKIP() << *reason;
  }
  ASSERT_NO_FATAL_FAILURE(
      start(SEPTET_SOURCE_DIR "/models", "simple", "unix:" + (folder_ / "balancer")));
  SeptetRun perf(folder_, "perf",
                 {"perf", "-m", "simple", "-u", proxy_->endpoint().text(), "--concurrency-range",
                  "6", "-p", "1500", "-s", "0.001"});
  ASSERT_TRUE(eventually(kPatience, [&] { return answered(50); })) << perf.output();

  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(perf.process().poll_exit(), std::nullopt)
        << "perf ended before the replica was killed";
    ASSERT_TRUE(replicas_->send_signal("r" + std::to_string(i), SIGKILL).ok());
    ASSERT_TRUE(eventually(kPatience, [&] { return status(i).restarts == 1; }));
  }
  const auto ended = perf.wait(kPatience);
  const Result<Ok> ready = replicas_->wait_ready(kPatience, interrupted_);

  ASSERT_TRUE(ended.has_value()) << perf.output();
  EXPECT_THAT(perf.output(), HasSubstr("Throughput"));
  EXPECT_THAT(perf.output(), Not(HasSubstr("Failed requests")));
  EXPECT_THAT(perf.output(), Not(HasSubstr(" failed")));
  EXPECT_TRUE(ready.ok());
  EXPECT_EQ(status(2).restarts, 0u);
  EXPECT_EQ(proxy_->stats().replies_5xx, 0u);
}

void ServeKillTest::kill_one_while_pictures_go_by(const std::string& transport,
                                                  const balance::ProxyOptions& options,
                                                  const std::string& protocol) {
  std::filesystem::create_directories(folder_ / "models/picture/1");
  std::ofstream(folder_ / "models/picture/config.pbtxt") << kPicture;
  std::ofstream(folder_ / "models/picture/times.csv")
      << "model,slice,batch,latency_us\npicture,1g.5gb,1,2000\n";
  ASSERT_NO_FATAL_FAILURE(start(folder_ / "models", "picture", "127.0.0.1:0", options));
  SeptetRun perf(folder_, "perf",
                 {"perf", "-m", "picture", "-i", protocol, "-u", proxy_->endpoint().text(),
                  "--concurrency-range", "6", "-p", "500", "-s", "0.001"});
  ASSERT_TRUE(eventually(kPatience, [&] { return answered(50); })) << perf.output();

  ASSERT_EQ(perf.process().poll_exit(), std::nullopt) << "perf ended before the replica was killed";
  ASSERT_TRUE(replicas_->send_signal("r0", SIGKILL).ok());
  ASSERT_TRUE(eventually(kPatience, [&] { return status(0).restarts == 1; }));
  const auto ended = perf.wait(kPatience);

  ASSERT_TRUE(ended.has_value()) << perf.output();
  EXPECT_THAT(perf.output(), HasSubstr("Throughput"));
  EXPECT_THAT(perf.output(), Not(HasSubstr(" failed")));
  const balance::ProxyStats stats = proxy_->stats();
  EXPECT_EQ(stats.replies_5xx, 0U);
  EXPECT_EQ(stats.slots_used, 0U);
  for (const balance::UpstreamStats& upstream : stats.upstreams) {
    EXPECT_EQ(upstream.transport, transport) << upstream.name;
    EXPECT_GT(upstream.slot_requests, 0U) << upstream.name;
  }
}

TEST_F(ServeKillTest, NorOneWhoseBodyLiesInASlotOfSharedMemory) {
  kill_one_while_pictures_go_by("slots", {});
}

TEST_F(ServeKillTest, NorOneThatReadsGrpcCallsThere) {
  kill_one_while_pictures_go_by("slots", {}, "grpc");
}

// Septet's own server in the role of Triton: nobody asks it for slots.
TEST_F(ServeKillTest, NorOneThatReadsSharedMemoryAsTritonDoes) {
  balance::ProxyOptions options;
  options.slots = false;
  options.foreign_shared_memory = true;
  kill_one_while_pictures_go_by("shared memory", options);
}

}  // namespace
}  // namespace septet::test
