// System shared memory through the whole server, and what a hostile client does with it.
#include "serve/edge/shared_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "support/test_server.h"

namespace septet::serve {
namespace {

using nlohmann::json;
using test_support::HttpClient;
using test_support::HttpReply;
using test_support::TestServer;
using ::testing::HasSubstr;

std::string error_of(const HttpReply& reply) {
  const json body = json::parse(reply.body, nullptr, false);
  return body.is_object() ? body.value("error", "") : "not JSON: " + reply.body;
}

// A POSIX shared memory object that goes with its owner.
class SharedObject {
 public:
  explicit SharedObject(std::size_t size) : key_("/septet_test_" + std::to_string(::getpid())) {
    fd_ = ::shm_open(key_.c_str(), O_CREAT | O_RDWR | O_TRUNC, 0600);
    CHECK(fd_ >= 0 && ::ftruncate(fd_, static_cast<off_t>(size)) == 0);
    void* base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    bytes_ = {static_cast<char*>(base), size};
  }
  ~SharedObject() {
    ::munmap(bytes_.data(), bytes_.size());
    ::close(fd_);
    ::shm_unlink(key_.c_str());
  }
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  const std::string& key() const { return key_; }
  std::span<char> bytes() const { return bytes_; }
  void shrink() { CHECK(::ftruncate(fd_, 0) == 0); }

 private:
  std::string key_;
  int fd_ = -1;
  std::span<char> bytes_;
};

class SharedMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.add_copy("copy", "TYPE_UINT8");
    server_.add_copy("texts", "TYPE_STRING", {}, "hold");
    server_.start();
    client_ = std::make_unique<HttpClient>(server_.connect());
  }

  HttpReply register_region(const std::string& name, std::uint64_t offset, std::uint64_t size) {
    return client_->post(
        "/v2/systemsharedmemory/region/" + name + "/register",
        json{{"key", object_.key()}, {"offset", offset}, {"byte_size", size}}.dump());
  }

  HttpReply infer(std::uint64_t in_size, std::uint64_t out_size) {
    const json body = {
        {"inputs",
         {{{"name", "IN"},
           {"datatype", "UINT8"},
           {"shape", {in_size}},
           {"parameters",
            {{"shared_memory_region", "in"}, {"shared_memory_byte_size", in_size}}}}}},
        {"outputs",
         {{{"name", "OUT"},
           {"parameters",
            {{"shared_memory_region", "out"}, {"shared_memory_byte_size", out_size}}}}}}};
    return client_->post("/v2/models/copy/infer", body.dump());
  }

  TestServer server_;
  SharedObject object_{8192};
  std::unique_ptr<HttpClient> client_;
};

TEST_F(SharedMemoryTest, InputsAreReadThereAndOutputsWrittenThere) {
  EXPECT_EQ(register_region("in", 0, 100).status, 200U);
  EXPECT_EQ(register_region("out", 5000, 100).status, 200U);
  object_.bytes()[7] = 'x';

  const HttpReply reply = infer(50, 60);

  ASSERT_EQ(reply.status, 200U) << reply.body;
  EXPECT_EQ(object_.bytes()[5007], 'x');
  const json output = json::parse(reply.body)["outputs"][0];
  EXPECT_FALSE(output.contains("data"));
  EXPECT_EQ(output["shape"], json::array({50}));
}

TEST_F(SharedMemoryTest, RangesAndNamesAreChecked) {
  EXPECT_THAT(error_of(register_region("in", 8000, 193)), HasSubstr("reach past its 8192 bytes"));
  EXPECT_EQ(register_region("in", UINT64_MAX, 2).status, 400U);
  EXPECT_EQ(register_region("in", 0, 100).status, 200U);
  EXPECT_THAT(error_of(register_region("in", 0, 100)), HasSubstr("already in manager"));
  EXPECT_THAT(error_of(infer(10, 10)), HasSubstr("Unable to find shared memory region: 'out'"));
  register_region("out", 200, 20);
  EXPECT_THAT(error_of(infer(101, 20)), HasSubstr("past its 100 bytes"));
  EXPECT_THAT(error_of(infer(21, 20)), HasSubstr("should be at least 21 bytes"));
  EXPECT_EQ(infer(20, 20).status, 200U);
}

TEST_F(SharedMemoryTest, StatusAndUnregister) {
  register_region("in", 4096, 100);

  const json all = json::parse(client_->get("/v2/systemsharedmemory/status").body);
  EXPECT_EQ(all[0]["offset"], 4096);
  EXPECT_EQ(client_->get("/v2/systemsharedmemory/region/no/status").status, 404U);
  EXPECT_EQ(client_->post("/v2/systemsharedmemory/region/no/unregister", "").status, 200U);
  EXPECT_EQ(client_->post("/v2/systemsharedmemory/unregister", "").status, 200U);
  EXPECT_EQ(client_->get("/v2/systemsharedmemory/status").body, "[]");
  EXPECT_EQ(client_->post("/v2/cudasharedmemory/unregister", "").status, 200U);
}

// The lengths in a tensor of strings are relied upon once they were checked; the client may change
// them until the engine runs.
TEST_F(SharedMemoryTest, StringsAreReadOnce) {
  std::vector<std::byte> strings;
  inference::append_bytes_element(strings, "abc");
  inference::append_bytes_element(strings, "defgh");
  std::memcpy(object_.bytes().data(), strings.data(), strings.size());
  register_region("in", 0, strings.size());
  const std::string body =
      json{{"inputs",
            {{{"name", "IN"},
              {"datatype", "BYTES"},
              {"shape", {2}},
              {"parameters",
               {{"shared_memory_region", "in"}, {"shared_memory_byte_size", strings.size()}}}}}}}
          .dump();
  client_->send("POST /v2/models/texts/infer HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
  server_.backend().await_held(1);

  std::memset(object_.bytes().data(), 0xff, strings.size());
  server_.backend().release();
  const HttpReply reply = client_->receive();

  ASSERT_EQ(reply.status, 200U) << reply.body;
  EXPECT_EQ(json::parse(reply.body)["outputs"][0]["data"], json::array({"abc", "defgh"}));
}

TEST_F(SharedMemoryTest, AnObjectThatShrinksUnderTheServerFailsTheRequestOnly) {
  register_region("in", 0, 100);
  register_region("out", 200, 100);
  object_.shrink();

  EXPECT_EQ(infer(50, 60).status, 400U);
  EXPECT_EQ(client_->get("/v2/health/live").status, 200U);
}

}  // namespace
}  // namespace septet::serve
