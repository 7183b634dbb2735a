#include "inference/v2_codec.h"

#include <gmock/gmock.h>

#include <cstring>

namespace septet::inference {
namespace {

using ::testing::HasSubstr;

// A body in memory with the padding that V2Body asks for.
class Body {
 public:
  Body(std::string_view json, std::string_view binary = {}) : json_bytes_(json.size()) {
    text_ = std::string(json) + std::string(binary);
    size_ = text_.size();
    text_.resize(size_ + kBodyPadding);
  }
  V2Body view() const {
    return {std::as_bytes(std::span(text_).first(size_)), json_bytes_, nullptr};
  }

 private:
  std::string text_;
  std::size_t size_ = 0;
  std::size_t json_bytes_;
};

std::string joined(const V2Message& message) {
  std::string text = message.json;
  for (const Blob& piece : message.binary) {
    text += piece.text();
  }
  return text;
}

Outcome<InferRequest> read(const Body& body) {
  V2Reader reader;
  return reader.read_request(body.view());
}

std::string refusal(std::string_view json, std::string_view binary = {}) {
  const auto request = read(Body(json, binary));
  return request.ok() ? "accepted" : request.error().message;
}

TEST(V2Codec, ReadsABinaryInputInPlace) {
  const Body body(
      R"({"id":"7","inputs":[{"name":"X","datatype":"INT32","shape":[2],"parameters":{"binary_data_size":8}}],)"
      R"("outputs":[{"name":"Y","parameters":{"classification":3,"binary_data":true}}]})",
      std::string_view("\1\0\0\0\2\0\0\0", 8));

  const auto request = read(body);

  ASSERT_TRUE(request.ok()) << request.error().message;
  EXPECT_EQ(request->id, "7");
  ASSERT_EQ(request->inputs.size(), 1U);
  EXPECT_EQ(request->inputs[0].shape, Shape{2});
  EXPECT_EQ(request->inputs[0].data.bytes.data(),
            body.view().bytes.data() + body.view().json_bytes);
  EXPECT_EQ(request->outputs[0].classification, 3U);
  EXPECT_TRUE(request->outputs[0].binary);
}

TEST(V2Codec, ReadsNestedAndFlatJsonDataAlike) {
  const auto flat = read(
      Body(R"({"inputs":[{"name":"X","datatype":"FP32","shape":[2,2],"data":[1,2.5,-3,4e2]}]})"));
  const auto nested = read(Body(
      R"({"inputs":[{"name":"X","datatype":"FP32","shape":[2,2],"data":[[1,2.5],[-3,4e2]]}]})"));

  ASSERT_TRUE(flat.ok() && nested.ok());
  EXPECT_EQ(flat->inputs[0].data.text(), nested->inputs[0].data.text());
  float last = 0;
  std::memcpy(&last, flat->inputs[0].data.bytes.data() + 12, 4);
  EXPECT_EQ(last, 400.0F);
}

TEST(V2Codec, KeepsTheParametersItDoesNotKnowForTheBackend) {
  const auto request =
      read(Body(R"({"parameters":{"sequence_id":9,"sequence_start":true,"timeout":5,"mine":"x"},)"
                R"("inputs":[]})"));

  ASSERT_TRUE(request.ok());
  EXPECT_EQ(std::get<std::uint64_t>(request->sequence_id), 9U);
  EXPECT_TRUE(request->sequence_start);
  EXPECT_EQ(request->timeout_us, 5U);
  EXPECT_EQ(request->parameters.size(), 1U);
}

TEST(V2Codec, RefusesWhatTheProtocolRefuses) {
  EXPECT_THAT(refusal("{"), HasSubstr("failed to parse the request JSON buffer"));
  EXPECT_THAT(refusal("[]"), HasSubstr("not an object"));
  EXPECT_THAT(refusal(R"({"id":"1"})"), HasSubstr("'inputs'"));
  EXPECT_THAT(refusal(R"({"inputs":[{"name":"X","datatype":"INT8","shape":[2],"data":[1,200]}]})"),
              HasSubstr("not a INT8 or out of its range"));
  EXPECT_THAT(refusal(R"({"inputs":[{"name":"X","datatype":"INT8","shape":[3],"data":[1,2]}]})"),
              HasSubstr("Shape does not match true shape of 'data'"));
  EXPECT_THAT(refusal(R"({"inputs":[{"name":"X","datatype":"FP16","shape":[1],"data":[1]}]})"),
              HasSubstr("FP16 data via JSON is not supported"));
  EXPECT_THAT(refusal(R"({"inputs":[{"name":"X","datatype":"INT8","shape":[-1],"data":[1]}]})"),
              HasSubstr("whole numbers of 0 or more"));
  EXPECT_THAT(refusal(R"({"inputs":[{"name":"X","datatype":"STRING","shape":[1],"data":[1]}]})"),
              HasSubstr("unknown datatype 'STRING'"));
  EXPECT_THAT(refusal(R"({"inputs":[{"name":"X","datatype":"INT8","shape":[1]}]})"),
              HasSubstr("exactly one of"));
  EXPECT_THAT(refusal(R"({"parameters":{"triton_x":1},"inputs":[]})"), HasSubstr("reserved"));
  EXPECT_THAT(refusal(R"({"parameters":{"x":[1]},"inputs":[]})"), HasSubstr("invalid type"));
}

TEST(V2Codec, CountsTheBinaryPartToTheByte) {
  const std::string_view json =
      R"({"inputs":[{"name":"X","datatype":"INT8","shape":[4],"parameters":{"binary_data_size":4}}]})";

  EXPECT_EQ(refusal(json, "abcd"), "accepted");
  EXPECT_THAT(refusal(json, "abc"), HasSubstr("unexpected size for input 'X'"));
  EXPECT_THAT(refusal(json, "abcde"), HasSubstr("unexpected additional input data"));
}

TEST(V2Codec, AllocatesNoMoreThanTheBodyCanFill) {
  EXPECT_THAT(
      refusal(R"({"inputs":[{"name":"X","datatype":"FP64","shape":[99999999999],"data":[1]}]})"),
      HasSubstr("Shape does not match"));
  EXPECT_THAT(
      refusal(
          R"({"inputs":[{"name":"X","datatype":"FP64","shape":[4294967296,4294967296],"data":[1]}]})"),
      HasSubstr("Shape does not match"));
}

struct RoundTrip {
  Datatype datatype;
  std::string_view bytes;
  Shape shape;
};

class V2CodecRoundTrip : public ::testing::TestWithParam<RoundTrip> {};

TEST_P(V2CodecRoundTrip, WhatIsWrittenAsJsonReadsBackAsTheSameBytes) {
  InferRequest request;
  request.id = "r";
  request.inputs.push_back({.name = "X",
                            .datatype = GetParam().datatype,
                            .shape = GetParam().shape,
                            .data = own_text(std::string(GetParam().bytes))});

  const auto message = write_request_as_json(request);

  ASSERT_TRUE(message.ok()) << message.error().message;
  const auto again = read(Body(message->json));
  ASSERT_TRUE(again.ok()) << again.error().message << message->json;
  EXPECT_EQ(again->inputs[0].data.text(), GetParam().bytes) << message->json;
  EXPECT_EQ(again->inputs[0].shape, GetParam().shape);
}

INSTANTIATE_TEST_SUITE_P(
    EveryTypeWithAJsonForm, V2CodecRoundTrip,
    ::testing::Values(RoundTrip{Datatype::kBool, {"\0\1", 2}, {2}},
                      RoundTrip{Datatype::kUint8, {"\0\377", 2}, {2}},
                      RoundTrip{Datatype::kInt8, {"\200\177", 2}, {2}},
                      RoundTrip{Datatype::kUint16, {"\377\377\0\1", 4}, {1, 2}},
                      RoundTrip{Datatype::kInt16, {"\0\200\377\177", 4}, {2, 1}},
                      RoundTrip{Datatype::kUint32, {"\377\377\377\377", 4}, {1}},
                      RoundTrip{Datatype::kInt32, {"\0\0\0\200", 4}, {}},
                      RoundTrip{Datatype::kUint64, {"\377\377\377\377\377\377\377\377", 8}, {1}},
                      RoundTrip{Datatype::kInt64, {"\0\0\0\0\0\0\0\200", 8}, {1}},
                      RoundTrip{Datatype::kFp32, {"\333\017\111\100\0\0\200\177", 4}, {1}},
                      RoundTrip{Datatype::kFp64, {"\030\055\104\124\373\041\011\100", 8}, {1}},
                      RoundTrip{Datatype::kBytes, {"\3\0\0\0a\"b\0\0\0\0", 11}, {2}}));

TEST(V2Codec, AResponseKeepsBinaryAndJsonOutputsApart) {
  InferResponse response{.model_name = "m", .model_version = "1", .id = "", .parameters = {}};
  response.outputs.push_back({.name = "A",
                              .datatype = Datatype::kUint8,
                              .shape = {2},
                              .data = own_text("hi"),
                              .form = OutputForm::kBinary});
  response.outputs.push_back(
      {.name = "B", .datatype = Datatype::kUint8, .shape = {1}, .data = own_text("\1")});

  const auto message = write_response(response);

  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->json,
            R"({"model_name":"m","model_version":"1","outputs":[{"name":"A","datatype":"UINT8",)"
            R"("shape":[2],"parameters":{"binary_data_size":2}},{"name":"B","datatype":"UINT8",)"
            R"("shape":[1],"data":[1]}]})");
  V2Reader reader;
  const Body body(message->json, "hi");
  const auto again = reader.read_response(body.view());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->outputs[0].data.text(), "hi");
  EXPECT_EQ(again->outputs[1].data.text(), "\1");
}

TEST(V2Codec, WritesTheRequestTheWayTheRealImageClientDoes) {
  InferRequest request;
  request.id = "0";
  request.inputs.push_back({.name = "data_0",
                            .datatype = Datatype::kFp32,
                            .shape = {3, 224, 224},
                            .data = own_text(std::string(602112, '\0'))});
  request.outputs.push_back({.name = "fc6_1", .binary = true, .classification = 3});

  const V2Message message = write_request(request);

  EXPECT_EQ(message.json,
            R"({"id":"0","inputs":[{"name":"data_0","datatype":"FP32","shape":[3,224,224],)"
            R"("parameters":{"binary_data_size":602112}}],"outputs":[{"name":"fc6_1",)"
            R"("parameters":{"classification":3,"binary_data":true}}]})");
  EXPECT_EQ(joined(message).size(), 602312U);
}

TEST(V2Codec, TakesTheTextOutOfAnErrorBody) {
  V2Reader reader;

  EXPECT_EQ(reader.read_error(R"({"error":"no such model"})"), "no such model");
  EXPECT_EQ(reader.read_error("<html>"), "<html>");
}

}  // namespace
}  // namespace septet::inference
