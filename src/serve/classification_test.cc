#include "serve/classification.h"

#include <gmock/gmock.h>

#include <cmath>

namespace septet::serve {
namespace {

using inference::Datatype;
using inference::OutputTensor;
using inference::Shape;
using ::testing::ElementsAre;

OutputTensor floats(std::vector<float> values, Shape shape) {
  OutputTensor output{.name = "Y", .datatype = Datatype::kFp32, .shape = std::move(shape)};
  output.data = inference::own_text(
      std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
  return output;
}

std::vector<std::string_view> strings(const OutputTensor& output) {
  return inference::split_bytes_elements(output.data.bytes).value();
}

TEST(Classification, SortsByValueAndAddsLabelsWhereThereAreSome) {
  const auto output = floats({1.5F, 15.34623F, -2.0F}, {3});

  const auto top = classify_output(output, 2, false, {"CUP", "MUG"});

  ASSERT_TRUE(top.ok());
  EXPECT_EQ(top->datatype, Datatype::kBytes);
  EXPECT_EQ(top->shape, Shape{2});
  EXPECT_THAT(strings(*top), ElementsAre("15.346230:1:MUG", "1.500000:0:CUP"));
}

TEST(Classification, AnswersEachBatchEntryAndNoMoreThanThereIs) {
  const auto output = floats({1, 2, 4, 3}, {2, 2});

  const auto top = classify_output(output, 9, true, {});

  ASSERT_TRUE(top.ok());
  EXPECT_EQ(top->shape, (Shape{2, 2}));
  EXPECT_THAT(strings(*top), ElementsAre("2.000000:1", "1.000000:0", "4.000000:0", "3.000000:1"));
}

TEST(Classification, NotANumberComesLast) {
  const auto output = floats({std::nanf(""), 1, std::nanf(""), 2}, {4});

  const auto top = classify_output(output, 3, false, {});

  EXPECT_THAT(strings(*top), ElementsAre("2.000000:3", "1.000000:1", "nan:0"));
}

TEST(Classification, PrintsWholeNumbersPlainly) {
  OutputTensor output{.name = "Y", .datatype = Datatype::kUint8, .shape = {2}};
  output.data = inference::own_text("\7\311");

  EXPECT_THAT(strings(*classify_output(output, 1, false, {})), ElementsAre("201:1"));
}

TEST(Classification, LabelsAreLinesWithoutTheirEnds) {
  EXPECT_THAT(parse_labels("a\r\nb\n\nd"), ElementsAre("a", "b", "", "d"));
  EXPECT_THAT(parse_labels("a\n"), ElementsAre("a"));
}

}  // namespace
}  // namespace septet::serve
