// gRPC's calls in slots of a proxy's shared memory: answered as over gRPC, and what a hostile proxy
// does with them.
#include <gmock/gmock.h>

#include <cstring>

#include "inference/edge/proto/grpc_service.pb.h"
#include "inference/slot_call.h"
#include "inference/slot_message.h"
#include "support/test_server.h"

namespace septet::serve {
namespace {

using test_support::HttpClient;
using test_support::HttpReply;
using test_support::TestServer;
using ::testing::HasSubstr;

constexpr std::size_t kRegionBytes = 1 << 20;
constexpr std::size_t kOffset = 4096 + 13;  // tensors are not aligned either

class SlotCallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.add_copy("floats", "TYPE_FP32");
    server_.add_copy("texts", "TYPE_STRING", {}, "hold");
    server_.take_slot_calls();
    server_.start();
  }

  static ::inference::ModelInferRequest message_for(const std::string& model,
                                                    const std::string& datatype,
                                                    std::int64_t elements,
                                                    const std::string& tensor) {
    ::inference::ModelInferRequest message;
    message.set_model_name(model);
    message.set_id("7");
    auto& input = *message.add_inputs();
    input.set_name("IN");
    input.set_datatype(datatype);
    input.add_shape(elements);
    message.add_raw_input_contents(tensor);
    return message;
  }
  // Into the slot, with its prefix; how long it is.
  std::size_t put(const ::inference::ModelInferRequest& message) {
    const std::string bytes = message.SerializeAsString();
    std::string framed(5, '\0');
    for (unsigned i = 0; i < 4; ++i) {
      framed[4 - i] = static_cast<char>(bytes.size() >> (8 * i) & 0xFFU);
    }
    framed += bytes;
    std::memcpy(region_->data() + kOffset, framed.data(), framed.size());
    return framed.size();
  }
  static std::string request(std::size_t length) {
    std::string text = "POST " + std::string(inference::kSlotCallTarget) +
                       " HTTP/1.1\r\nHost: x\r\n" + std::string(inference::kSlotField) + ": ";
    inference::append_slot_message(text, {kRegionBytes, kOffset, length});
    return text + "\r\nContent-Length: 0\r\n\r\n";
  }
  HttpReply call(const ::inference::ModelInferRequest& message) {
    HttpClient client(server_.connect());
    client.send(request(put(message)), region_->fd());
    return client.receive();
  }

  TestServer server_;
  std::shared_ptr<os::SealedMemory> region_ =
      os::SealedMemory::create("test", kRegionBytes).value();
};

std::string strings(const std::vector<std::string>& elements) {
  std::vector<std::byte> bytes;
  for (const std::string& element : elements) {
    inference::append_bytes_element(bytes, element);
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(SlotCallsTest, AreGrantedToWhoeverAsksUnlessTheServerWantsNone) {
  HttpClient client(server_.connect());
  client.send("GET /v2/health/ready HTTP/1.1\r\nHost: x\r\nSeptet-Slot-Calls: 1\r\n\r\n");
  EXPECT_EQ(client.receive().fields.at("septet-slot-calls"), "1");

  TestServer other;
  other.add_copy("floats", "TYPE_FP32");
  other.start();
  HttpClient there(other.connect());
  there.send("GET /v2/health/ready HTTP/1.1\r\nHost: x\r\nSeptet-Slot-Calls: 1\r\n\r\n");
  EXPECT_FALSE(there.receive().fields.contains("septet-slot-calls"));
}

TEST_F(SlotCallsTest, AreAnsweredWithTheResponseMessage) {
  std::string tensor;
  for (int i = 0; i < 400'000; ++i) {
    tensor += static_cast<char>('a' + i % 26);
  }

  const HttpReply reply = call(message_for("floats", "FP32", 100'000, tensor));

  ASSERT_EQ(reply.status, 200U) << reply.body;
  EXPECT_EQ(reply.fields.at("grpc-status"), "0");
  EXPECT_EQ(reply.fields.at("septet-slots"), "1");
  ::inference::ModelInferResponse response;
  ASSERT_TRUE(response.ParseFromString(reply.body));
  EXPECT_EQ(response.id(), "7");
  ASSERT_EQ(response.raw_output_contents_size(), 1);
  EXPECT_TRUE(response.raw_output_contents(0) == tensor);
}

TEST_F(SlotCallsTest, ErrorsHaveGrpcsNumbers) {
  const HttpReply unknown = call(message_for("nobody", "FP32", 1, "abcd"));
  EXPECT_EQ(unknown.fields.at("grpc-status"), "5");
  EXPECT_THAT(unknown.body, HasSubstr("nobody"));

  ::inference::ModelInferRequest both = message_for("floats", "FP32", 1, "abcd");
  both.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_EQ(call(both).fields.at("grpc-status"), "3");
}

TEST_F(SlotCallsTest, WhatIsNoMessageIsRefusedAsThatProxysOwn) {
  std::memset(region_->data(), 0xff, kRegionBytes);
  HttpClient client(server_.connect());
  client.send(request(5000), region_->fd());

  const HttpReply reply = client.receive();

  EXPECT_EQ(reply.fields.at("grpc-status"), "3");
  EXPECT_EQ(reply.fields.at("septet-slots"), "1");
}

TEST_F(SlotCallsTest, WhatIsReliedUponIsReadOnce) {
  const std::string tensor = strings({"abc", std::string(70'000, 'x')});
  HttpClient client(server_.connect());
  client.send(request(put(message_for("texts", "BYTES", 2, tensor))), region_->fd());
  server_.backend().await_held(1);

  std::memset(region_->data(), 0xff, kRegionBytes);
  server_.backend().release();
  const HttpReply reply = client.receive();

  EXPECT_EQ(reply.fields.at("grpc-status"), "0") << reply.body;
  ::inference::ModelInferResponse response;
  ASSERT_TRUE(response.ParseFromString(reply.body));
  EXPECT_TRUE(response.raw_output_contents(0) == tensor);
}

// Who sends it as an ordinary body gets what an unknown path gets.
TEST_F(SlotCallsTest, AreServedInSlotsOnly) {
  HttpClient client(server_.connect());
  client.send("POST " + std::string(inference::kSlotCallTarget) +
              " HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n" + std::string(5, '\0'));

  EXPECT_EQ(client.receive().status, 404U);
}

}  // namespace
}  // namespace septet::serve
