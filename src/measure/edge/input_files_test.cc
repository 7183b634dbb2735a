#include "measure/edge/input_files.h"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace septet::measure {
namespace {

using inference::Datatype;
using testing::HasSubstr;

class InputFilesTest : public testing::Test {
 protected:
  InputFilesTest() {
    folder_ = std::filesystem::temp_directory_path() /
              ("septet_input_files_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    model_.name = "m";
    model_.max_batch_size = 4;
    model_.inputs.resize(1);
    model_.inputs[0].name = "IN";
    model_.inputs[0].datatype = Datatype::kInt32;
    model_.inputs[0].shape = {2};
    model_.outputs = model_.inputs;
    model_.outputs[0].name = "OUT";
  }
  ~InputFilesTest() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  Result<RequestStreams> read_paths(const std::vector<std::string>& paths) {
    Result<InputData> data = read_input_files(paths, model_, options_);
    return data.ok() ? Result<RequestStreams>(std::move(data->requests)) : data.error();
  }
  Result<RequestStreams> read(const std::string& json) {
    return read_paths({file("data.json", json)});
  }
  Result<InputData> read_all(const std::string& json) {
    return read_input_files({file("data.json", json)}, model_, options_);
  }
  static std::vector<std::int32_t> numbers(const inference::InferRequest& request) {
    const auto bytes = request.inputs[0].data.bytes;
    std::vector<std::int32_t> values(bytes.size() / sizeof(std::int32_t));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  std::filesystem::path folder_;
  ModelDescription model_;
  InputOptions options_;
};

TEST_F(InputFilesTest, EveryFormOfAnEntryIsRead) {
  const auto streams = read(R"({"data": [
      {"IN": [1, 2]},
      {"IN": {"content": [3, 4], "shape": [2]}},
      {"IN": {"b64": "BQAAAAYAAAA="}}]})");

  ASSERT_TRUE(streams.ok()) << streams.error().text();
  ASSERT_EQ(streams->size(), 1U);
  ASSERT_EQ(streams->front().size(), 3U);
  EXPECT_THAT(numbers(streams->front()[0]), testing::ElementsAre(1, 2));
  EXPECT_THAT(numbers(streams->front()[1]), testing::ElementsAre(3, 4));
  EXPECT_THAT(numbers(streams->front()[2]), testing::ElementsAre(5, 6));
  EXPECT_THAT(streams->front()[0].inputs[0].shape, testing::ElementsAre(1, 2));
}

TEST_F(InputFilesTest, AnArrayOfArraysIsSeveralStreams) {
  const auto streams = read(R"({"data": [[{"IN": [1, 1]}, {"IN": [2, 2]}], [{"IN": [3, 3]}]]})");

  ASSERT_TRUE(streams.ok()) << streams.error().text();
  ASSERT_EQ(streams->size(), 2U);
  EXPECT_EQ((*streams)[0].size(), 2U);
  EXPECT_EQ((*streams)[1].size(), 1U);
}

TEST_F(InputFilesTest, ABatchHoldsEntriesThatFollowEachOtherAndWraps) {
  options_.batch_size = 2;
  const auto streams = read(R"({"data": [{"IN": [1, 1]}, {"IN": [2, 2]}, {"IN": [3, 3]}]})");

  ASSERT_TRUE(streams.ok()) << streams.error().text();
  ASSERT_EQ(streams->front().size(), 2U);
  EXPECT_THAT(numbers(streams->front()[0]), testing::ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(numbers(streams->front()[1]), testing::ElementsAre(3, 3, 1, 1));
}

TEST_F(InputFilesTest, AVariableDimensionTakesTheEntrysShape) {
  model_.inputs[0].shape = {-1};

  const auto with_shape = read(R"({"data": [{"IN": {"content": [1, 2, 3], "shape": [3]}}]})");
  const auto without = read(R"({"data": [{"IN": [1, 2, 3]}]})");

  ASSERT_TRUE(with_shape.ok()) << with_shape.error().text();
  EXPECT_THAT(with_shape->front()[0].inputs[0].shape, testing::ElementsAre(1, 3));
  EXPECT_THAT(without.error().text(), HasSubstr("variable shape"));
}

TEST_F(InputFilesTest, WhatIsWrongIsNamedWithItsEntry) {
  EXPECT_THAT(read(R"({"data": [{"IN": [1, 2]}, {"IN": [1]}]})").error().message,
              HasSubstr("entry 2"));
  EXPECT_THAT(read(R"({"data": [{"OUT": [1, 2]}]})").error().message,
              HasSubstr("no data for input 'IN'"));
  EXPECT_THAT(read(R"({"data": [{"IN": [1, 2], "X": 1}]})").error().message,
              HasSubstr("no input 'X'"));
  EXPECT_THAT(read(R"({"data": [{"IN": {"b64": "!!"}}]})").error().message, HasSubstr("base64"));
  EXPECT_THAT(read(R"({"data": [{"IN": {"b64": "AAAA"}}]})").error().message, HasSubstr("bytes"));
  EXPECT_THAT(read(R"({"data": [{"IN": ["a", "b"]}]})").error().message, HasSubstr("IN"));
  EXPECT_THAT(read(R"({"data": []})").error().message, HasSubstr("non-empty"));
  EXPECT_THAT(read(R"({"data": [[]]})").error().message, HasSubstr("stream 1"));
  EXPECT_THAT(read("not json").error().message, HasSubstr("not a JSON object"));
  EXPECT_EQ(read_input_files({"/no/such/file"}, model_, options_).error().kind,
            ErrorKind::kNotFound);
}

TEST_F(InputFilesTest, ValidationDataSaysWhatTheAnswersMustHold) {
  const auto data = read_all(R"({"data": [{"IN": [1, 2]}, {"IN": [3, 4]}],
      "validation_data": [{"OUT": [1, 2]}, {"OUT": {"b64": "AwAAAAQAAAA="}}]})");

  ASSERT_TRUE(data.ok()) << data.error().text();
  ASSERT_EQ(data->expected.size(), 1U);
  ASSERT_EQ(data->expected[0].size(), 2U);
  EXPECT_EQ(data->expected[0][0].at("OUT").size(), 8U);
  EXPECT_EQ(data->expected[0][0].at("OUT")[4], std::byte{2});
  EXPECT_EQ(data->expected[0][1].at("OUT")[4], std::byte{4});
}

TEST_F(InputFilesTest, ABatchsExpectedOutputsFollowEachOther) {
  options_.batch_size = 2;
  const auto data = read_all(R"({"data": [[{"IN": [1, 2]}, {"IN": [3, 4]}]],
      "validation_data": [[{"OUT": {"content": [[1, 2]], "shape": [1, 2]}}, {"OUT": [3, 4]}]]})");

  ASSERT_TRUE(data.ok()) << data.error().text();
  ASSERT_EQ(data->expected[0].size(), 1U);
  EXPECT_EQ(data->expected[0][0].at("OUT").size(), 16U);
  EXPECT_EQ(data->expected[0][0].at("OUT")[8], std::byte{3});
}

TEST_F(InputFilesTest, ValidationDataThatDoesNotFitIsRefused) {
  EXPECT_THAT(read_all(R"({"data": [{"IN": [1, 2]}], "validation_data": []})").error().message,
              HasSubstr("'validation_data' has not the form of 'data'"));
  EXPECT_THAT(
      read_all(R"({"data": [{"IN": [1, 2]}], "validation_data": [{"NO": [1]}]})").error().message,
      HasSubstr("no output 'NO'"));
  EXPECT_THAT(read_all(R"({"data": [{"IN": [1, 2]}], "validation_data": [{"OUT": ["a"]}]})")
                  .error()
                  .message,
              HasSubstr("validation entry 1"));
}

TEST_F(InputFilesTest, AFolderHoldsAFileForEachInput) {
  file("IN", std::string("\1\0\0\0\2\0\0\0", 8));

  const auto streams = read_paths({folder_.string()});

  ASSERT_TRUE(streams.ok()) << streams.error().text();
  EXPECT_THAT(numbers(streams->front()[0]), testing::ElementsAre(1, 2));
}

TEST_F(InputFilesTest, AFileOfTheWrongSizeIsRefused) {
  file("IN", "123");

  EXPECT_THAT(read_paths({folder_.string()}).error().message, HasSubstr("has 3 bytes"));
}

TEST_F(InputFilesTest, AFolderOfStringsHasOneALine) {
  model_.inputs[0].datatype = Datatype::kBytes;
  file("IN", "one\nthree\n");

  const auto streams = read_paths({folder_.string()});

  ASSERT_TRUE(streams.ok()) << streams.error().text();
  EXPECT_EQ(streams->front()[0].inputs[0].data.size(), 4U + 3 + 4 + 5);
}

}  // namespace
}  // namespace septet::measure
