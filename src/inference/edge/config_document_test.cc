#include "inference/edge/config_document.h"

#include <gmock/gmock.h>

#include "inference/edge/config_support.h"
#include "inference/edge/proto/model_config.pb.h"

namespace septet::inference {
namespace {

using ::testing::HasSubstr;

Result<ConfigDocument> parse(std::string_view text, const std::string& name = "m") {
  return ConfigDocument::from_text(text, "repo/m/config.pbtxt", name);
}

std::string complaint(std::string_view text) {
  const auto document = parse(text);
  return document.ok() ? "accepted" : document.error().message;
}

constexpr std::string_view kDensenet = R"(
name: "densenet_onnx"
platform: "onnxruntime_onnx"
max_batch_size : 0
input [ { name: "data_0" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 224, 224 ]
          reshape { shape: [ 1, 3, 224, 224 ] } } ]
output [ { name: "fc6_1" data_type: TYPE_FP32 dims: [ 1000 ]
           reshape { shape: [ 1, 1000, 1, 1 ] } label_filename: "densenet_labels.txt" } ]
)";

TEST(ConfigDocument, ReadsTheGuidesModel) {
  const auto document = parse(kDensenet, "densenet_onnx");

  ASSERT_TRUE(document.ok()) << document.error().text();
  const ModelConfig words = document->words();
  EXPECT_EQ(words.max_batch_size, 0);
  ASSERT_EQ(words.inputs.size(), 1U);
  EXPECT_EQ(words.inputs[0].dims, (Shape{3, 224, 224}));
  EXPECT_EQ(words.inputs[0].backend_dims(), (Shape{1, 3, 224, 224}));
  EXPECT_EQ(words.outputs[0].label_filename, "densenet_labels.txt");
}

TEST(ConfigDocument, WritesTheJsonThatRealClientsRead) {
  auto document = parse(kDensenet, "densenet_onnx");
  document->complete_defaults();

  const std::string json = document->to_json();

  EXPECT_THAT(json, HasSubstr(R"("name":"densenet_onnx","platform":"onnxruntime_onnx",)"
                              R"("backend":"onnxruntime")"));
  EXPECT_THAT(json, HasSubstr(R"("format":"FORMAT_NCHW","dims":[3,224,224])"));
  EXPECT_THAT(json, HasSubstr(R"("is_shape_tensor":false,"allow_ragged_batch":false)"));
  EXPECT_THAT(json, HasSubstr(R"("version_policy":{"latest":{"num_versions":1}})"));
  EXPECT_THAT(json, HasSubstr(R"("instance_group":[{"name":"densenet_onnx")"));
}

TEST(ConfigDocument, ASetInstanceCountReplacesTheConfiguredGroups) {
  auto document = parse(R"(
    platform: "onnxruntime_onnx"
    instance_group [ { count: 2 kind: KIND_CPU }, { count: 3 kind: KIND_CPU } ])");
  ASSERT_TRUE(document.ok()) << document.error().text();

  document->set_instance_count(7);

  EXPECT_EQ(document->words().instance_groups.size(), 1U);
  EXPECT_EQ(document->words().instance_count(), 7);
}

TEST(ConfigDocument, ASetInstanceCountAlsoHoldsWhereNoGroupIsConfigured) {
  auto document = parse(R"(platform: "onnxruntime_onnx")");
  ASSERT_TRUE(document.ok());

  document->set_instance_count(4);

  EXPECT_EQ(document->words().instance_count(), 4);
}

TEST(ConfigDocument, ASyntaxErrorNamesFileLineAndReason) {
  EXPECT_THAT(complaint("name: \"m\"\nmax_batch_size: many\n"),
              HasSubstr("repo/m/config.pbtxt:2:17: "));
  EXPECT_THAT(complaint("nmae: \"m\"\n"), HasSubstr("repo/m/config.pbtxt:1:"));
}

TEST(ConfigDocument, AnUnsupportedFieldIsRefusedByNameWithItsLine) {
  EXPECT_THAT(complaint("name: \"m\"\n\nbatch_input { kind: BATCH_ELEMENT_COUNT }\n"),
              HasSubstr("config.pbtxt:3: field 'batch_input' is not supported"));
  EXPECT_THAT(complaint("input {\n name: \"x\"\n dims: 1\n is_shape_tensor: true\n}\n"),
              HasSubstr("config.pbtxt:4: field 'is_shape_tensor' is not supported"));
  EXPECT_EQ(complaint("input { name: \"x\" dims: 1 is_shape_tensor: false }\n"), "accepted");
}

TEST(ConfigDocument, EveryRefusedFieldExists) {
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  ::inference::ModelConfig::descriptor();  // its file is loaded

  for (const RefusedField& refused : refused_fields()) {
    EXPECT_NE(pool->FindFieldByName(std::string(refused.field)), nullptr) << refused.field;
  }
}

TEST(ConfigDocument, ContradictionsAreErrors) {
  EXPECT_THAT(complaint("name: \"other\""), HasSubstr("not that of the model's folder"));
  EXPECT_THAT(complaint("max_batch_size: -1"), HasSubstr("negative"));
  EXPECT_THAT(complaint("input { name: \"x\" dims: 0 }"), HasSubstr("dims [0]"));
  EXPECT_THAT(complaint("input { name: \"x\" dims: 1 } input { name: \"x\" dims: 1 }"),
              HasSubstr("there twice"));
  EXPECT_THAT(complaint("input { name: \"x\" dims: 4 reshape { shape: [3] } }"),
              HasSubstr("does not hold as many elements"));
  EXPECT_THAT(complaint("max_batch_size: 2 dynamic_batching { preferred_batch_size: 4 }"),
              HasSubstr("outside 1..max_batch_size (2)"));
}

TEST(ConfigDocument, CompletesWhatIsLeftOutFromTheModel) {
  ConfigDocument document("m");
  const ModelSignature signature{.inputs = {{"x", Datatype::kFp32, {-1, 64}}},
                                 .outputs = {{"y", Datatype::kFp32, {-1, 10}}}};

  const auto completed = document.complete(signature);

  ASSERT_TRUE(completed.ok()) << completed.error().text();
  const ModelConfig words = document.words();
  EXPECT_EQ(words.max_batch_size, 4);
  EXPECT_EQ(words.inputs[0].dims, Shape{64});
  EXPECT_EQ(words.outputs[0].dims, Shape{10});
}

TEST(ConfigDocument, DisagreementWithTheModelIsAnError) {
  const ModelSignature signature{.inputs = {{"x", Datatype::kFp32, {1, 64}}},
                                 .outputs = {{"y", Datatype::kFp32, {1, 10}}}};
  auto wrong_type = parse("input { name: \"x\" data_type: TYPE_INT8 dims: [1, 64] }");
  auto wrong_name = parse("input { name: \"z\" data_type: TYPE_FP32 dims: [1, 64] }");
  auto wrong_shape = parse("input { name: \"x\" data_type: TYPE_FP32 dims: [1, 65] }");

  EXPECT_THAT(wrong_type->complete(signature).error().message, HasSubstr("TYPE_INT8"));
  EXPECT_THAT(wrong_name->complete(signature).error().message, HasSubstr("it has x"));
  EXPECT_THAT(wrong_shape->complete(signature).error().message, HasSubstr("[1,65]"));
}

TEST(ConfigDocument, ReadsItsOwnJsonBack) {
  auto document = parse(kDensenet, "densenet_onnx");
  document->complete_defaults();

  const auto again = ConfigDocument::from_json(document->to_json(), "densenet_onnx");

  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(again->to_json(), document->to_json());
}

}  // namespace
}  // namespace septet::inference
