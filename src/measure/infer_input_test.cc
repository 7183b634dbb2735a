#include "measure/infer_input.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "inference/v2_codec.h"

namespace septet::measure {
namespace {

using inference::Datatype;

TensorDescription tensor(std::string name, Datatype datatype, inference::Shape shape) {
  TensorDescription description;
  description.name = std::move(name);
  description.datatype = datatype;
  description.shape = std::move(shape);
  return description;
}

ModelDescription densenet() {
  ModelDescription model;
  model.name = "densenet_onnx";
  model.inputs = {tensor("data_0", Datatype::kFp32, {3, 224, 224})};
  model.outputs = {tensor("fc6_1", Datatype::kFp32, {1000})};
  return model;
}

ModelDescription batched(Datatype datatype, inference::Shape shape) {
  ModelDescription model;
  model.name = "batched";
  model.max_batch_size = 8;
  model.inputs = {tensor("IN", datatype, std::move(shape))};
  return model;
}

// The JSON text and the binary size are those of perf_analyzer 23.05's request, captured.
TEST(BuildRequest, IsPerfAnalyzersRequest) {
  const auto request = build_request(densenet(), {});
  ASSERT_TRUE(request.ok()) << request.error().text();

  const inference::V2Message message = inference::write_request(*request);

  EXPECT_EQ(message.binary_bytes(), 602'112U);
  EXPECT_THAT(
      message.json,
      testing::HasSubstr(R"("inputs":[{"name":"data_0","datatype":"FP32","shape":[3,224,224],)"
                         R"("parameters":{"binary_data_size":602112}}],)"
                         R"("outputs":[{"name":"fc6_1","parameters":{"binary_data":true}}]})"));
}

TEST(BuildRequest, RandomFloatsAreOrdinaryNumbers) {
  const auto request = build_request(densenet(), {});
  const std::span<const std::byte> bytes = request->inputs[0].data.bytes;

  double sum = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    ASSERT_TRUE(value == 0 || std::isnormal(value));
    sum += value;
  }

  EXPECT_NEAR(sum / 150'528, 0.5, 0.01);
}

TEST(BuildRequest, TheSameSeedGivesTheSameBytes) {
  InputOptions options;
  const auto a = build_request(densenet(), options);
  const auto b = build_request(densenet(), options);
  options.seed = 2;
  const auto c = build_request(densenet(), options);

  EXPECT_EQ(a->inputs[0].data.text(), b->inputs[0].data.text());
  EXPECT_NE(a->inputs[0].data.text(), c->inputs[0].data.text());
}

TEST(BuildRequest, ZeroDataIsZero) {
  InputOptions options;
  options.kind = InputKind::kZero;
  const auto request = build_request(batched(Datatype::kInt64, {4}), options);

  EXPECT_EQ(request->inputs[0].data.text(), std::string(32, '\0'));
}

TEST(BuildRequest, ABatchStandsInFrontOfTheShape) {
  InputOptions options;
  options.batch_size = 3;
  const auto request = build_request(batched(Datatype::kInt32, {16}), options);

  EXPECT_THAT(request->inputs[0].shape, testing::ElementsAre(3, 16));
  EXPECT_EQ(request->inputs[0].data.size(), 3U * 16 * 4);
}

TEST(BuildRequest, StringsHaveTheWantedLengthOrContent) {
  InputOptions options;
  options.string_length = 5;
  const auto random = build_request(batched(Datatype::kBytes, {2}), options);
  options.string_data = "42";
  const auto fixed = build_request(batched(Datatype::kBytes, {2}), options);

  EXPECT_EQ(random->inputs[0].data.size(), 2U * (4 + 5));
  EXPECT_EQ(fixed->inputs[0].data.text(), std::string_view("\2\0\0\0"
                                                           "42\2\0\0\0"
                                                           "42",
                                                           12));
}

TEST(BuildRequest, RefusesABatchThatTheModelDoesNotTake) {
  InputOptions options;
  options.batch_size = 2;
  EXPECT_EQ(build_request(densenet(), options).error().kind, ErrorKind::kUsage);

  options.batch_size = 9;
  EXPECT_THAT(build_request(batched(Datatype::kInt32, {1}), options).error().message,
              testing::HasSubstr("max_batch_size 8"));
}

TEST(BuildRequest, AVariableDimensionNeedsAShape) {
  const ModelDescription model = batched(Datatype::kFp32, {-1, 4});
  InputOptions options;
  EXPECT_THAT(build_request(model, options).error().hint, testing::HasSubstr("--shape IN:"));

  options.shapes["IN"] = {7, 4};
  EXPECT_THAT(build_request(model, options)->inputs[0].shape, testing::ElementsAre(1, 7, 4));

  options.shapes["IN"] = {7, 5};
  EXPECT_THAT(build_request(model, options).error().message, testing::HasSubstr("[-1,4]"));
}

TEST(BuildRequest, AShapeForNoInputIsRefused) {
  InputOptions options;
  options.shapes["data"] = {1};

  EXPECT_THAT(build_request(densenet(), options).error().message, testing::HasSubstr("data_0"));
}

TEST(BuildRequest, AnImpossiblyLargeShapeIsRefused) {
  InputOptions options;
  options.shapes["IN"] = {INT64_MAX, 4};

  EXPECT_FALSE(build_request(batched(Datatype::kFp32, {-1, 4}), options).ok());
}

TEST(BuildRequest, OptionalInputsAreLeftOut) {
  ModelDescription model = densenet();
  model.inputs.push_back(tensor("mask", Datatype::kBool, {-1}));
  model.inputs.back().optional = true;

  EXPECT_EQ(build_request(model, {})->inputs.size(), 1U);
}

}  // namespace
}  // namespace septet::measure
