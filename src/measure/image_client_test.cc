#include "measure/image_client.h"

#include <gmock/gmock.h>

namespace septet::measure {
namespace {

using inference::Datatype;
using testing::ElementsAre;
using testing::HasSubstr;

ModelDescription densenet() {
  ModelDescription model;
  model.name = "densenet_onnx";
  model.inputs = {{.name = "data_0",
                   .datatype = Datatype::kFp32,
                   .shape = {3, 224, 224},
                   .format = "FORMAT_NCHW"}};
  model.outputs = {{.name = "fc6_1", .datatype = Datatype::kFp32, .shape = {1000}, .format = ""}};
  return model;
}

std::string error_of(const ModelDescription& description, int batch_size = 1) {
  const auto model = image_model(description, batch_size);
  return model.ok() ? "none" : model.error().message;
}

TEST(ImageModel, ReadsSizeLayoutAndNames) {
  const auto model = image_model(densenet(), 1);

  ASSERT_TRUE(model.ok()) << model.error().text();
  EXPECT_EQ(model->input.width, 224);
  EXPECT_EQ(model->input.layout, PixelLayout::kNchw);
  EXPECT_EQ(model->input_name, "data_0");
  EXPECT_EQ(model->output_name, "fc6_1");
}

TEST(ImageModel, KnowsTheLayoutFromFormatOrFromWhereTheChannelsStand) {
  ModelDescription nhwc = densenet();
  nhwc.inputs[0].shape = {299, 300, 3};
  nhwc.inputs[0].format = "FORMAT_NONE";

  const auto model = image_model(nhwc, 1);

  ASSERT_TRUE(model.ok()) << model.error().text();
  EXPECT_EQ(model->input.layout, PixelLayout::kNhwc);
  EXPECT_EQ(model->input.height, 299);
  EXPECT_EQ(model->input.width, 300);
}

TEST(ImageModel, RefusesWhatIsNoPictureModelInTheOfficialWords) {
  ModelDescription two_inputs = densenet();
  two_inputs.inputs.push_back(two_inputs.inputs[0]);
  ModelDescription no_output = densenet();
  no_output.outputs.clear();
  ModelDescription flat = densenet();
  flat.inputs[0].shape = {16};
  ModelDescription channels = densenet();
  channels.inputs[0].shape = {4, 224, 224};
  ModelDescription variable = densenet();
  variable.inputs[0].shape = {3, -1, -1};

  EXPECT_EQ(error_of(two_inputs), "expecting 1 input, got 2");
  EXPECT_EQ(error_of(no_output), "expecting 1 output, got 0");
  EXPECT_EQ(error_of(flat),
            "expecting input to have 3 dimensions, model 'densenet_onnx' input has 1");
  EXPECT_THAT(error_of(channels), HasSubstr("with 4 channels"));
  EXPECT_THAT(error_of(variable), HasSubstr("cannot be made"));
}

TEST(ImageModel, ChecksTheBatchSize) {
  ModelDescription batched = densenet();
  batched.max_batch_size = 8;

  EXPECT_EQ(error_of(densenet(), 2), "batching not supported for model 'densenet_onnx'");
  EXPECT_EQ(error_of(batched, 9), "expecting batch size <= 8 for model 'densenet_onnx'");
  EXPECT_EQ(error_of(batched, 8), "none");
}

TEST(PlanRequests, RepeatsOnePictureAndWrapsAFolder) {
  EXPECT_THAT(plan_requests(1, 3), ElementsAre(ElementsAre(0, 0, 0)));
  EXPECT_THAT(plan_requests(5, 2),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 0)));
  EXPECT_THAT(plan_requests(2, 1), ElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST(ClassificationRequest, AsksForTheTopClassesAsBytes) {
  const ImageModel model = image_model(densenet(), 1).value();

  const auto request = classification_request(model, 4, {inference::own_text("pixels")}, 3);

  EXPECT_EQ(request.id, "4");
  EXPECT_THAT(request.inputs[0].shape, ElementsAre(3, 224, 224));
  EXPECT_EQ(request.inputs[0].data.text(), "pixels");
  EXPECT_EQ(request.outputs[0].classification, 3U);
  EXPECT_TRUE(request.outputs[0].binary);
}

TEST(ClassificationRequest, PutsABatchInFront) {
  ModelDescription batched = densenet();
  batched.max_batch_size = 8;
  const ImageModel model = image_model(batched, 2).value();

  const auto request =
      classification_request(model, 0, {inference::own_text("ab"), inference::own_text("cd")}, 1);

  EXPECT_THAT(request.inputs[0].shape, ElementsAre(2, 3, 224, 224));
  EXPECT_EQ(request.inputs[0].data.text(), "abcd");
}

inference::InferResponse answer_of(const std::vector<std::string>& elements) {
  std::vector<std::byte> bytes;
  for (const std::string& element : elements) {
    inference::append_bytes_element(bytes, element);
  }
  inference::InferResponse response;
  inference::OutputTensor& output = response.outputs.emplace_back();
  output.name = "fc6_1";
  output.datatype = Datatype::kBytes;
  output.data = inference::own_bytes(std::move(bytes));
  return response;
}

TEST(ClassificationText, IsTheOfficialClientsPrintout) {
  const auto text = classification_text(
      answer_of({"15.346230:504:COFFEE MUG", "13.224326:968:CUP", "10.422965:505"}), "fc6_1",
      {"mug.jpg"});

  ASSERT_TRUE(text.ok()) << text.error().text();
  EXPECT_EQ(*text,
            "Image 'mug.jpg':\n"
            "    15.346230 (504) = COFFEE MUG\n"
            "    13.224326 (968) = CUP\n"
            "    10.422965 (505)\n");
}

TEST(ClassificationText, DealsABatchOutToItsPictures) {
  const auto text =
      classification_text(answer_of({"1:0", "0:1", "2:5", "1:4"}), "fc6_1", {"a", "b"});

  ASSERT_TRUE(text.ok()) << text.error().text();
  EXPECT_EQ(*text, "Image 'a':\n    1 (0)\n    0 (1)\nImage 'b':\n    2 (5)\n    1 (4)\n");
}

TEST(ClassificationText, RefusesAnAnswerThatDoesNotFit) {
  inference::InferResponse numbers = answer_of({"1:0"});
  numbers.outputs[0].datatype = Datatype::kFp32;

  EXPECT_FALSE(classification_text(answer_of({"1:0"}), "other", {"a"}).ok());
  EXPECT_FALSE(classification_text(answer_of({"1:0"}), "fc6_1", {"a", "b"}).ok());
  EXPECT_FALSE(classification_text(numbers, "fc6_1", {"a"}).ok());
}

TEST(ClassLine, DropsPiecesBeyondTheThird) {
  EXPECT_EQ(class_line("1.5:3:CUP:MUG"), "    1.5 (3) = CUP");
  EXPECT_EQ(class_line(""), "    ");
}

}  // namespace
}  // namespace septet::measure
