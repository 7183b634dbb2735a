#include "serve/request_check.h"

#include <gmock/gmock.h>

namespace septet::serve {
namespace {

using inference::Datatype;
using inference::InferRequest;
using inference::ModelConfig;
using inference::Shape;
using ::testing::HasSubstr;

// The protocol's example model: two inputs of 16 INT32, batches up to 8.
ModelConfig simple() {
  ModelConfig config{.name = "simple", .max_batch_size = 8};
  for (const char* name : {"INPUT0", "INPUT1"}) {
    config.inputs.push_back({.name = name, .datatype = Datatype::kInt32, .dims = {16}});
  }
  config.outputs.push_back({.name = "OUTPUT0", .datatype = Datatype::kInt32, .dims = {16}});
  config.outputs.push_back({.name = "MASK", .datatype = Datatype::kBool, .dims = {16}});
  return config;
}

void add_input(InferRequest& request, std::string name, Shape shape,
               Datatype datatype = Datatype::kInt32) {
  const std::size_t size = inference::byte_size(datatype, shape).value_or(0);
  request.inputs.push_back({.name = std::move(name),
                            .datatype = datatype,
                            .shape = std::move(shape),
                            .data = inference::own_text(std::string(size, '\0'))});
}

InferRequest good(std::int64_t batch = 1) {
  InferRequest request;
  add_input(request, "INPUT0", {batch, 16});
  add_input(request, "INPUT1", {batch, 16});
  return request;
}

std::string refusal(const InferRequest& request, const ModelConfig& config = simple()) {
  const auto checked = check_request(config, request);
  return checked.ok() ? "accepted" : checked.error().message;
}

TEST(RequestCheck, AcceptsABatchUpToTheModelsLimit) {
  const auto checked = check_request(simple(), good(8));

  ASSERT_TRUE(checked.ok());
  EXPECT_EQ(checked->batch_size, 8);
}

TEST(RequestCheck, GivesTritonsMessages) {
  InferRequest one;
  add_input(one, "INPUT0", {1, 16});
  InferRequest wrong_shape;
  add_input(wrong_shape, "INPUT0", {1, 15});
  add_input(wrong_shape, "INPUT1", {1, 16});
  InferRequest wrong_type;
  add_input(wrong_type, "INPUT0", {1, 16}, Datatype::kFp32);
  add_input(wrong_type, "INPUT1", {1, 16});
  InferRequest wrong_name;
  add_input(wrong_name, "INPUT0", {1, 16});
  add_input(wrong_name, "INPUT9", {1, 16});

  EXPECT_EQ(refusal(one), "expected 2 inputs but got 1 inputs for model 'simple'");
  EXPECT_EQ(refusal(wrong_shape),
            "unexpected shape for input 'INPUT0' for model 'simple'. Expected [-1,16], got [1,15]");
  EXPECT_THAT(refusal(wrong_type),
              HasSubstr("data-type is 'FP32', model expects 'INT32' for 'simple'"));
  EXPECT_THAT(refusal(wrong_name), HasSubstr("unexpected inference input 'INPUT9'"));
  EXPECT_EQ(refusal(good(9)), "inference request batch-size must be <= 8 for 'simple'");
  EXPECT_THAT(refusal(good(0)), HasSubstr("must be >= 1"));
}

TEST(RequestCheck, CountsTheBytesOfEveryInput) {
  InferRequest request = good();
  request.inputs[1].data = inference::own_text(std::string(63, '\0'));

  EXPECT_THAT(refusal(request), HasSubstr("Expected 64, got 63"));
}

TEST(RequestCheck, CountsTheElementsOfStrings) {
  ModelConfig config{.name = "s", .max_batch_size = 0};
  config.inputs.push_back({.name = "X", .datatype = Datatype::kBytes, .dims = {-1}});
  const auto with = [](std::string bytes) {
    InferRequest request;
    request.inputs.push_back({.name = "X",
                              .datatype = Datatype::kBytes,
                              .shape = {1},
                              .data = inference::own_text(std::move(bytes))});
    return request;
  };

  EXPECT_EQ(refusal(with(std::string("\1\0\0\0a", 5)), config), "accepted");
  EXPECT_THAT(refusal(with(std::string("\2\0\0\0a", 5)), config), HasSubstr("incomplete string"));
  EXPECT_THAT(refusal(with(std::string("\0\0\0\0\0\0\0\0", 8)), config),
              HasSubstr("unexpected number of string elements 2"));
}

TEST(RequestCheck, RefusesOutputsThatDoNotExistOrHaveNoClasses) {
  InferRequest unknown = good();
  unknown.outputs.push_back({.name = "OUTPUT7"});
  InferRequest classes = good();
  classes.outputs.push_back({.name = "MASK", .classification = 1});

  EXPECT_THAT(refusal(unknown), HasSubstr("unexpected inference output 'OUTPUT7'"));
  EXPECT_THAT(refusal(classes), HasSubstr("class result not available for output 'MASK'"));
}

TEST(RequestCheck, TellsShapesApartButNotBatchSizes) {
  ModelConfig config{.name = "m", .max_batch_size = 8};
  config.inputs.push_back({.name = "X", .datatype = Datatype::kUint8, .dims = {-1}});
  const auto key = [&](Shape shape) {
    InferRequest request;
    add_input(request, "X", std::move(shape), Datatype::kUint8);
    return check_request(config, request)->shape_key;
  };

  EXPECT_EQ(key({1, 4}), key({2, 4}));
  EXPECT_NE(key({1, 4}), key({1, 5}));
}

TEST(RequestCheck, ReshapesBetweenClientAndBackend) {
  ModelConfig config{.name = "m", .max_batch_size = 8};
  const inference::TensorConfig tensor{.name = "X", .dims = {6}, .reshape = Shape{2, 3}};
  const inference::TensorConfig free{.name = "Y", .dims = {-1}, .reshape = Shape{1, -1}};

  EXPECT_EQ(shape_for_backend(config, tensor, {5, 6}), (Shape{5, 2, 3}));
  EXPECT_EQ(shape_for_client(config, tensor, {5, 2, 3}), (Shape{5, 6}));
  EXPECT_EQ(shape_for_backend(config, free, {5, 7}), (Shape{5, 1, 7}));
  EXPECT_EQ(shape_for_client(config, free, {5, 1, 7}), (Shape{5, 7}));
}

TEST(RequestCheck, ARawBodyIsTheOnlyInput) {
  ModelConfig config{.name = "m", .max_batch_size = 4};
  config.inputs.push_back({.name = "X", .datatype = Datatype::kFp32, .dims = {-1, 2}});

  const auto request = raw_request(config, inference::own_text(std::string(24, '\0')));

  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->inputs[0].shape, (Shape{1, 3, 2}));
  EXPECT_TRUE(request->binary_outputs);
  EXPECT_FALSE(raw_request(simple(), {}).ok());
}

}  // namespace
}  // namespace septet::serve
