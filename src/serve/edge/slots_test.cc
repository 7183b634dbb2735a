// Bodies in slots of a proxy's shared memory: read in place, and what a hostile proxy does with
// them.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <cstring>

#include "inference/slot_message.h"
#include "inference/v2_codec.h"
#include "support/test_server.h"

namespace septet::serve {
namespace {

using inference::Datatype;
using test_support::HttpClient;
using test_support::HttpReply;
using test_support::TestServer;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr std::size_t kRegionBytes = 1 << 20;
constexpr std::size_t kOffset = 4096 + 64;

class SlotsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.add_copy("floats", "TYPE_FP32");
    server_.add_copy("texts", "TYPE_STRING", {}, "hold");
    server_.start();
    client_ = std::make_unique<HttpClient>(server_.connect());
  }

  // The body of an infer call with those bytes as its tensor, into the slot; how long it is.
  std::size_t put_request(Datatype datatype, std::size_t elements,
                          const std::vector<std::byte>& tensor) {
    inference::InferRequest request;
    request.binary_outputs = true;
    inference::InputTensor& input = request.inputs.emplace_back();
    input.name = "IN";
    input.datatype = datatype;
    input.shape = {static_cast<std::int64_t>(elements)};
    input.data = inference::own_bytes(tensor);
    const inference::V2Message message = write_request(request);
    json_bytes_ = message.json.size();
    put(message.json + std::string(message.binary.front().text()));
    return json_bytes_ + tensor.size();
  }
  void put(std::string_view body) {
    std::memcpy(region_->data() + kOffset, body.data(), body.size());
  }
  std::string request(const std::string& model, std::string_view slot) const {
    return fmt::format(
        "POST /v2/models/{}/infer HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: {}\r\n"
        "{}: {}\r\nContent-Length: 0\r\n\r\n",
        model, json_bytes_, inference::kSlotField, slot);
  }
  static std::string slot_of(std::size_t length, std::size_t offset = kOffset) {
    std::string text;
    inference::append_slot_message(text, {kRegionBytes, offset, length});
    return text;
  }
  // On a connection of its own, with the descriptor.
  HttpReply ask(const std::string& text, int descriptor) {
    HttpClient client(server_.connect());
    client.send(text, descriptor);
    return client.receive();
  }

  TestServer server_;
  std::shared_ptr<os::SealedMemory> region_ =
      os::SealedMemory::create("test", kRegionBytes).value();
  std::size_t json_bytes_ = 0;
  std::unique_ptr<HttpClient> client_;
};

std::vector<std::byte> floats(std::size_t count) {
  std::vector<std::byte> bytes(count * sizeof(float));
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(i);
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return bytes;
}

std::string_view text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(SlotsTest, AreGrantedToWhoeverAsks) {
  client_->send("GET /v2/health/ready HTTP/1.1\r\nHost: x\r\nSeptet-Slots: 1\r\n\r\n");
  const HttpReply asked = client_->receive();
  const HttpReply not_asked = client_->get("/v2/health/ready");

  EXPECT_EQ(asked.status, 200U);
  EXPECT_EQ(asked.fields.at("septet-slots"), "1");
  EXPECT_FALSE(not_asked.fields.contains("septet-slots"));
}

TEST_F(SlotsTest, AnInferenceReadsItsTensorThere) {
  const std::vector<std::byte> tensor = floats(100'000);
  const std::size_t length = put_request(Datatype::kFp32, 100'000, tensor);

  for (int i = 0; i < 3; ++i) {  // the descriptor comes once
    const std::string text = request("floats", slot_of(length));
    i == 0 ? client_->send(text, region_->fd()) : client_->send(text);
    const HttpReply reply = client_->receive();

    ASSERT_EQ(reply.status, 200U) << reply.body;
    EXPECT_EQ(reply.fields.at("septet-slots"), "1");
    EXPECT_THAT(reply.body, EndsWith(text_of(tensor)));
  }
}

TEST_F(SlotsTest, ErrorsOfTheRequestItselfAreAnsweredAsThatProxysOwn) {
  put("{\"inputs\": 5}");
  json_bytes_ = 13;

  const HttpReply reply = ask(request("floats", slot_of(13)), region_->fd());

  EXPECT_EQ(reply.status, 400U);
  EXPECT_THAT(reply.body, HasSubstr("'inputs'"));
  EXPECT_EQ(reply.fields.at("septet-slots"), "1");
}

TEST_F(SlotsTest, AnyOtherRequestMayComeThatWayToo) {
  put("{\"ready\": true}");

  const HttpReply reply =
      ask(fmt::format("POST /v2/repository/index HTTP/1.1\r\nHost: x\r\nSeptet-Slot: {}\r\n\r\n",
                      slot_of(15)),
          region_->fd());

  EXPECT_EQ(reply.status, 200U);
  EXPECT_THAT(reply.body, HasSubstr("floats"));
}

// Both the lengths inside a tensor of strings and the JSON are copied before they are checked.
TEST_F(SlotsTest, WhatIsReliedUponIsReadOnce) {
  std::vector<std::byte> strings;
  inference::append_bytes_element(strings, "abc");
  inference::append_bytes_element(strings, std::string(70'000, 'x'));
  const std::size_t length = put_request(Datatype::kBytes, 2, strings);
  client_->send(request("texts", slot_of(length)), region_->fd());
  server_.backend().await_held(1);

  std::memset(region_->data(), 0xff, kRegionBytes);
  server_.backend().release();
  const HttpReply reply = client_->receive();

  EXPECT_EQ(reply.status, 200U) << reply.body;
  EXPECT_THAT(reply.body, EndsWith(text_of(strings)));
}

TEST_F(SlotsTest, MessagesThatMakeNoSenseAreRefusedWithoutTheGrant) {
  const std::size_t length = put_request(Datatype::kFp32, 100, floats(100));
  const std::string too_long = fmt::format("1 {} {} {}", kRegionBytes, kOffset, kRegionBytes);
  const std::string larger_region = fmt::format("1 {} {} {}", 2 * kRegionBytes, kOffset, length);
  for (const std::string& slot : {std::string(), std::string("banana"), too_long, larger_region,
                                  fmt::format("2 {} {} {}", kRegionBytes, kOffset, length)}) {
    const HttpReply reply = ask(request("floats", slot), region_->fd());

    EXPECT_EQ(reply.status, 400U) << slot;
    EXPECT_FALSE(reply.fields.contains("septet-slots")) << slot;
  }
  for (const char* const body :
       {"Content-Length: 2\r\n\r\n{}", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"}) {
    const HttpReply reply =
        ask(fmt::format("POST /v2/models/floats/infer HTTP/1.1\r\nHost: x\r\nSeptet-Slot: {}\r\n{}",
                        slot_of(length), body),
            region_->fd());
    EXPECT_EQ(reply.status, 400U) << body;
  }
  EXPECT_EQ(client_->get("/v2/health/ready").status, 200U);
}

TEST_F(SlotsTest, MemoryThatCouldShrinkIsRefused) {
  const std::size_t length = put_request(Datatype::kFp32, 100, floats(100));
  const os::UniqueFd unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), kRegionBytes), 0);
  const os::UniqueFd no_memory(::open("/dev/null", O_RDWR | O_CLOEXEC));

  for (const int descriptor : {unsealed.get(), no_memory.get()}) {
    const HttpReply reply = ask(request("floats", slot_of(length)), descriptor);

    EXPECT_EQ(reply.status, 400U);
    EXPECT_FALSE(reply.fields.contains("septet-slots"));
  }
}

TEST_F(SlotsTest, AConnectionKnowsOnlyTheRegionThatCameOverIt) {
  const std::size_t length = put_request(Datatype::kFp32, 100, floats(100));
  client_->send(request("floats", slot_of(length)), region_->fd());
  EXPECT_EQ(client_->receive().status, 200U);

  HttpClient other(server_.connect());
  other.send(request("floats", slot_of(length)));
  const HttpReply reply = other.receive();

  EXPECT_EQ(reply.status, 400U);
  EXPECT_FALSE(reply.fields.contains("septet-slots"));
}

TEST_F(SlotsTest, DescriptorsThatNobodyAskedForAreClosed) {
  const auto open_ones = [] {
    std::size_t count = 0;
    for (int fd = 0; fd < 256; ++fd) {
      count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(client_->get("/v2/health/live").status, 200U);
  const std::size_t before = open_ones();

  for (int i = 0; i < 20; ++i) {
    client_->send("GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n", region_->fd());
    EXPECT_EQ(client_->receive().status, 200U);
  }

  // One or two may come and go with the process's other work.
  EXPECT_LT(open_ones(), before + 10);
}

}  // namespace
}  // namespace septet::serve
