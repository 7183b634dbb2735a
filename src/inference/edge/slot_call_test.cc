#include "inference/slot_call.h"

#include <gtest/gtest.h>

#include "inference/edge/proto/grpc_service.pb.h"

namespace septet::inference {
namespace {

std::string framed(const std::string& message) {
  std::string prefix(5, '\0');
  for (unsigned i = 0; i < 4; ++i) {
    prefix[4 - i] = static_cast<char>(message.size() >> (8 * i) & 0xFFU);
  }
  return prefix + message;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

::inference::ModelInferRequest request() {
  ::inference::ModelInferRequest message;
  message.set_model_name("m");
  message.set_id("7");
  auto& input = *message.add_inputs();
  input.set_name("IN");
  input.add_shape(300);
  (*message.mutable_parameters())["priority"].set_int64_param(1);
  message.add_raw_input_contents(std::string(300, 'a'));
  message.add_raw_input_contents("");
  message.add_raw_input_contents("bc");
  return message;
}

TEST(SlotCall, AMessageIsSplitFromItsTensors) {
  ::inference::ModelInferRequest message = request();
  const std::string text = framed(message.SerializeAsString());

  const auto split = split_infer_message(bytes_of(text));

  ASSERT_TRUE(split);
  ASSERT_EQ(split->tensors.size(), 3U);
  EXPECT_EQ(split->tensors[0].size(), 300U);
  EXPECT_EQ(split->tensors[1].size(), 0U);
  EXPECT_EQ(split->tensors[2].data() - bytes_of(text).data(),
            static_cast<std::ptrdiff_t>(text.find("bc")));
  ::inference::ModelInferRequest rest;
  ASSERT_TRUE(rest.ParseFromString(split->rest));
  message.clear_raw_input_contents();
  EXPECT_EQ(rest.SerializeAsString(), message.SerializeAsString());
}

TEST(SlotCall, TheFirstTensorIsFoundFromTheMessagesBeginning) {
  const std::string text = framed(request().SerializeAsString());
  const std::size_t at = text.find("aaa");

  EXPECT_EQ(first_tensor_at(text), at);
  EXPECT_EQ(first_tensor_at(std::string_view(text).substr(0, at)), at);
  for (std::size_t size = 0; size < at; ++size) {
    EXPECT_EQ(first_tensor_at(std::string_view(text).substr(0, size)), std::nullopt) << size;
  }
}

TEST(SlotCall, WhatIsCutOrFramedWronglyIsNone) {
  const std::string message = request().SerializeAsString();
  const std::string text = framed(message);

  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(split_infer_message(bytes_of(text).first(size))) << size;
  }
  std::string compressed = text;
  compressed[0] = 1;
  EXPECT_FALSE(split_infer_message(bytes_of(compressed)));
  EXPECT_FALSE(split_infer_message(bytes_of(text + "x")));
  // A length that passes the end, an end of a group, a tag that never ends.
  for (const std::string bad :
       {"\x3a\x05y", "\x0c", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    EXPECT_FALSE(split_infer_message(bytes_of(framed(bad)))) << bad;
  }
  EXPECT_TRUE(split_infer_message(bytes_of(framed(""))));
}

}  // namespace
}  // namespace septet::inference
