// Large bodies for servers that are not septet's, through the protocol's system shared memory
// extension: servers that know it, refuse it, forget it or never find the region.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "balance/edge/foreign_memory.h"
#include "balance/edge/proxy_fixture.h"
#include "os/unique_fd.h"

namespace septet::balance {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr std::size_t kFirstBytes = 300'000;
constexpr std::size_t kSecondBytes = 302'112;

std::string tensors() {
  std::string bytes;
  for (std::size_t i = 0; i < kFirstBytes + kSecondBytes; ++i) {
    bytes += static_cast<char>('a' + i * i % 23);
  }
  return bytes;
}

std::string infer_request(std::string_view more_parameters = "") {
  const std::string json =
      fmt::format(R"({{"inputs":[{{"name":"A","parameters":{{"binary_data_size":{}}}}},)"
                  R"({{"name":"B","parameters":{{"binary_data_size":{}{}}}}}]}})",
                  kFirstBytes, kSecondBytes, more_parameters);
  return fmt::format(
      "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\ninference-header-content-length: {}\r\n"
      "Content-Length: {}\r\n\r\n{}{}",
      json.size(), json.size() + kFirstBytes + kSecondBytes, json, tensors());
}

FakeAnswer refusal(std::string_view why) {
  const std::string body = Json{{"error", why}}.dump();
  return {
      fmt::format("HTTP/1.1 400 Bad Request\r\nContent-Length: {}\r\n\r\n{}", body.size(), body)};
}

// A v2 server with the extension, as far as the proxy sees it. Any thread.
class ForeignServer {
 public:
  enum class Registers { kYes, kRefuses, kForgetsAtOnce };
  explicit ForeignServer(Registers registers = Registers::kYes) : registers_(registers) {}

  FakeAnswer operator()(const FakeRequest& request) {
    const std::lock_guard lock(mutex_);
    const std::string& target = request.target;
    if (target == "/v2") {
      return {http_reply(R"({"name":"triton","extensions":["x","system_shared_memory"]})")};
    }
    if (target == "/v2/systemsharedmemory/status") {
      Json all = Json::array();
      for (const auto& [name, key] : regions_) {
        all.push_back({{"name", name}, {"key", key}, {"offset", 0}, {"byte_size", 1}});
      }
      return {http_reply(all.dump())};
    }
    if (target == "/v2/systemsharedmemory/unregister") {
      regions_.clear();
      return {http_reply("")};
    }
    if (target.starts_with("/v2/systemsharedmemory/region/")) {
      return change_regions(request);
    }
    return target.ends_with("/infer") ? infer(request) : FakeAnswer{http_reply("{}")};
  }
  // As a new process that took the place of this one.
  void forget() {
    const std::lock_guard lock(mutex_);
    regions_.clear();
  }
  void add(const std::string& name) {
    const std::lock_guard lock(mutex_);
    regions_[name] = "/" + name;
  }
  std::string tensors_read() {
    const std::lock_guard lock(mutex_);
    return tensors_;
  }
  FakeRequest last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  int registrations() {
    const std::lock_guard lock(mutex_);
    return registrations_;
  }
  std::string key() {
    const std::lock_guard lock(mutex_);
    return regions_.empty() ? "" : regions_.begin()->second;
  }

 private:
  FakeAnswer change_regions(const FakeRequest& request) {
    const std::size_t begin = std::string_view("/v2/systemsharedmemory/region/").size();
    const std::string name = request.target.substr(begin, request.target.rfind('/') - begin);
    if (request.target.ends_with("/unregister")) {
      regions_.erase(name);
      return {http_reply("")};
    }
    ++registrations_;
    if (registers_ == Registers::kRefuses) {
      return refusal("Unable to open shared memory region: '" + name + "'");
    }
    if (registers_ == Registers::kYes) {
      regions_[name] = Json::parse(request.body)["key"];
    }
    return {http_reply("")};
  }
  FakeAnswer infer(const FakeRequest& request) {
    last_ = request;
    tensors_.clear();
    const std::size_t json_bytes = request.body.rfind('}') + 1;
    std::size_t binary_at = json_bytes;
    const Json document = Json::parse(request.body.substr(0, json_bytes));
    for (const Json& input : document["inputs"]) {
      const Json& parameters = input["parameters"];
      if (parameters.contains("binary_data_size")) {
        const std::size_t size = parameters["binary_data_size"];
        tensors_ += request.body.substr(binary_at, size);
        binary_at += size;
        continue;
      }
      const auto region = regions_.find(parameters["shared_memory_region"].get<std::string>());
      if (region == regions_.end()) {
        return refusal("Unable to find shared memory region: " +
                       parameters["shared_memory_region"].dump());
      }
      const os::UniqueFd fd(::shm_open(region->second.c_str(), O_RDONLY, 0));
      std::string tensor(parameters["shared_memory_byte_size"].get<std::size_t>(), '\0');
      const ::off_t at = parameters["shared_memory_offset"];
      if (::pread(fd.get(), tensor.data(), tensor.size(), at) < 0) {
        return refusal("Unable to read");
      }
      tensors_ += tensor;
    }
    return {http_reply(R"({"outputs":[]})")};
  }

  std::mutex mutex_;
  Registers registers_;
  std::map<std::string, std::string> regions_;
  int registrations_ = 0;
  std::string tensors_;
  FakeRequest last_;
};

class ProxySharedMemoryTest : public ProxyTest {
 protected:
  void add(ForeignServer& server, FakeReplica::Options options = {}) {
    options.keep_bodies = true;
    add_replica([&server](const FakeRequest& request) { return server(request); }, options);
  }
  void start_with(ProxyOptions options = {}) {
    options.foreign_shared_memory = true;
    start(options);
  }
  UpstreamStats upstream(std::size_t index = 0) const { return proxy_->stats().upstreams[index]; }
  void wait_for(std::string_view transport, std::size_t index = 0) const {
    while (upstream(index).transport != transport) {
    }
  }
  bool infer() { return ask(infer_request()).starts_with("HTTP/1.1 200"); }
};

TEST_F(ProxySharedMemoryTest, TensorsAreReadWhereTheyWereReceived) {
  ForeignServer server;
  add(server);
  start_with();
  wait_for("shared memory");

  EXPECT_TRUE(infer());

  EXPECT_TRUE(server.tensors_read() == tensors());
  EXPECT_LT(server.last().body_bytes, 1000U);
  EXPECT_THAT(server.last().head, Not(HasSubstr("ontent-length: 1")));  // of the JSON before
  EXPECT_EQ(upstream().slot_requests, 1U);
  EXPECT_EQ(proxy_->stats().slots_used, 0U);
  EXPECT_EQ(proxy_->stats().slot_bytes, 64ULL << 20U);
}

TEST_F(ProxySharedMemoryTest, TheRegionGoesWithTheProxy) {
  ForeignServer server;
  add(server);
  start_with();
  wait_for("shared memory");
  const std::string path = "/dev/shm" + server.key();
  ASSERT_TRUE(std::filesystem::exists(path)) << path;

  proxy_.reset();

  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ProxySharedMemoryTest, IsOffUnlessAskedFor) {
  ForeignServer server;
  add(server);
  start();

  EXPECT_TRUE(infer());

  EXPECT_TRUE(server.tensors_read() == tensors());
  EXPECT_GT(server.last().body_bytes, kFirstBytes);
  EXPECT_EQ(server.registrations(), 0);
  EXPECT_EQ(proxy_->stats().slot_bytes, 0U);
}

TEST_F(ProxySharedMemoryTest, AServerThatRefusesTheRegionGetsWholeBodies) {
  ForeignServer server(ForeignServer::Registers::kRefuses);
  add(server);
  start_with();
  while (server.registrations() == 0) {
  }

  EXPECT_TRUE(infer());
  EXPECT_TRUE(infer());

  EXPECT_TRUE(server.tensors_read() == tensors());
  EXPECT_EQ(upstream().transport, "unix");
  EXPECT_EQ(upstream().slot_requests, 0U);
  EXPECT_EQ(server.registrations(), 1);
}

TEST_F(ProxySharedMemoryTest, AServerThatWasStartedAnewGetsTheRequestWholeAndTheRegionAgain) {
  ForeignServer server;
  add(server);
  start_with();
  wait_for("shared memory");
  EXPECT_TRUE(infer());

  server.forget();
  EXPECT_TRUE(infer());
  EXPECT_TRUE(server.tensors_read() == tensors());
  wait_for("shared memory");
  EXPECT_TRUE(infer());

  EXPECT_LT(server.last().body_bytes, 1000U);
  EXPECT_EQ(server.registrations(), 2);
  EXPECT_EQ(upstream().ejections, 0U);
  EXPECT_EQ(upstream().failed, 0U);
}

TEST_F(ProxySharedMemoryTest, AServerThatNeverFindsTheRegionIsLeftInPeaceInTheEnd) {
  ForeignServer server(ForeignServer::Registers::kForgetsAtOnce);
  add(server);
  start_with();
  wait_for("shared memory");

  for (int i = 0; i < 1000 && server.registrations() < 9; ++i) {
    EXPECT_TRUE(infer());
    EXPECT_TRUE(server.tensors_read() == tensors());
  }
  while (upstream().transport != "unix") {
    EXPECT_TRUE(infer());
  }
  const int registrations = server.registrations();
  EXPECT_TRUE(infer());

  EXPECT_EQ(server.registrations(), registrations);
  EXPECT_EQ(upstream().ejections, 0U);
}

TEST_F(ProxySharedMemoryTest, WhatSpeaksOfSharedMemoryItselfIsSentWhole) {
  ForeignServer server;
  add(server);
  start_with();
  wait_for("shared memory");

  const std::string reply = ask(infer_request(R"(,"shared_memory_offset":0)"));

  EXPECT_TRUE(reply.starts_with("HTTP/1.1 200")) << reply;
  EXPECT_GT(server.last().body_bytes, kFirstBytes);
  EXPECT_EQ(upstream().slot_requests, 0U);
}

// Whoever knows its name could read what others sent.
TEST_F(ProxySharedMemoryTest, ClientsDoNotLearnTheRegionsName) {
  ForeignServer server;
  add(server);
  start_with();
  wait_for("shared memory");
  server.add("clients_own");

  const std::string reply = ask("GET /v2/systemsharedmemory/status HTTP/1.1\r\nHost: a\r\n\r\n");

  EXPECT_THAT(reply, HasSubstr("clients_own"));
  EXPECT_THAT(reply, Not(HasSubstr("septet-slots")));
}

TEST_F(ProxySharedMemoryTest, AClientThatUnregistersEverythingDisturbsNobody) {
  ForeignServer server;
  add(server);
  start_with();
  wait_for("shared memory");

  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(ask("POST /v2/systemsharedmemory/unregister HTTP/1.1\r\nHost: a\r\n"
                    "Content-Length: 0\r\n\r\n")
                    .starts_with("HTTP/1.1 200"));
    EXPECT_TRUE(infer());
    EXPECT_TRUE(server.tensors_read() == tensors());
    wait_for("shared memory");
  }
}

TEST_F(ProxySharedMemoryTest, BesideReplicasOfSeptetTheOthersGetWholeBodies) {
  ForeignServer server;
  add(server);
  start_with();
  wait_for("shared memory");
  const std::string path = "/dev/shm" + server.key();
  add_replica([](const FakeRequest&) { return FakeAnswer{http_reply("{}")}; },
              {.keep_bodies = true, .slots = true});
  ASSERT_TRUE(proxy_->set_upstreams(upstreams()).ok());
  wait_for("slots", 1);

  const test::ClosedLoopResult result =
      test::run_closed_loop({proxy_->endpoint(), 4, 50, infer_request()});

  EXPECT_EQ(result.failed, 0U);
  EXPECT_TRUE(server.tensors_read() == tensors());
  EXPECT_EQ(upstream(0).transport, "unix");
  EXPECT_GT(upstream(1).slot_requests, 0U);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ProxySharedMemoryTest, AReplicaThatDiesMidRequestCostsNone) {
  ForeignServer server;
  std::atomic<int> calls = 0;
  for (int i = 0; i < 3; ++i) {
    add_replica(
        [&](const FakeRequest& request) {
          FakeAnswer answer = server(request);
          if (request.target.ends_with("/infer") && ++calls % 20 == 0) {
            server.forget();
            answer = {"HTTP/1.1 200 OK\r\nContent-Le", {}, FakeAnswer::Then::kReset};
          }
          return answer;
        },
        {.keep_bodies = true});
  }
  start_with();
  for (std::size_t i = 0; i < 3; ++i) {
    wait_for("shared memory", i);
  }

  const test::ClosedLoopResult result =
      test::run_closed_loop({proxy_->endpoint(), 4, 300, infer_request()});

  EXPECT_EQ(result.failed, 0U);
  EXPECT_GE(proxy_->stats().retries, 10U);
  EXPECT_EQ(proxy_->stats().slots_used, 0U);
}

TEST(ForeignMemory, KnowsTheExtensionByItsName) {
  EXPECT_TRUE(announces_shared_memory(R"({"extensions":["a","system_shared_memory"]})"));
  for (const char* const text : {"", "[]", R"({"extensions":"system_shared_memory"})",
                                 R"({"extensions":["cuda_shared_memory",1]})"}) {
    EXPECT_FALSE(announces_shared_memory(text)) << text;
  }
}

}  // namespace
}  // namespace septet::balance
