#include "balance/shared_request.h"

#include <gtest/gtest.h>

namespace septet::balance {
namespace {

constexpr TensorPlace kPlace{"region-1", 4096, 96};

// The JSON as rewritten; "(whole)" when the request has to be sent as it is.
std::string rewritten(std::string_view json) {
  std::string out = "head ";
  const bool done = append_shared_request(out, json, kPlace);
  EXPECT_TRUE(out.starts_with("head "));
  EXPECT_TRUE(done || out == "head ");
  return done ? out.substr(5) : "(whole)";
}

std::string of_inputs(std::string_view inputs) {
  return R"({"id":"7","inputs":[)" + std::string(inputs) +
         R"(],"outputs":[{"name":"binary_data_size"}]})";
}

TEST(SharedRequest, NamesThePlaceOfEachTensorInsteadOfItsSize) {
  const std::string request = of_inputs(
      R"({"name":"A","shape":[16],"datatype":"FP32","parameters":{"binary_data_size":64}},)"
      R"({"name":"B","data":[1]},{ "parameters" : { "x" : {"binary_data_size":5} , )"
      R"("binary_data_size" : 32 } , "name" : "C\"{"})");

  EXPECT_EQ(
      rewritten(request),
      of_inputs(
          R"({"name":"A","shape":[16],"datatype":"FP32","parameters":{"shared_memory_region":"region-1","shared_memory_byte_size":64,"shared_memory_offset":4096}},)"
          R"({"name":"B","data":[1]},{ "parameters" : { "x" : {"binary_data_size":5} , )"
          R"("shared_memory_region":"region-1","shared_memory_byte_size":32,"shared_memory_offset":4160 } , "name" : "C\"{"})"));
}

TEST(SharedRequest, SizesThatDoNotAccountForTheTensorsLeaveItAsItIs) {
  EXPECT_EQ(rewritten(of_inputs(R"({"parameters":{"binary_data_size":64}})")), "(whole)");
  EXPECT_EQ(rewritten(of_inputs(R"({"parameters":{"binary_data_size":97}})")), "(whole)");
  EXPECT_EQ(rewritten(of_inputs(R"({"parameters":{"binary_data_size":-96}})")), "(whole)");
  EXPECT_EQ(rewritten(of_inputs(R"({"parameters":{"binary_data_size":96.0}})")), "(whole)");
  EXPECT_EQ(rewritten(of_inputs(R"({"parameters":{"binary_data_size":"96"}})")), "(whole)");
  EXPECT_EQ(rewritten(of_inputs(R"({"parameters":{"binary_data_size":18446744073709551615}})")),
            "(whole)");
  EXPECT_EQ(rewritten(of_inputs(R"({"parameters":{"binary_data_size":48,"binary_data_size":48}})")),
            "(whole)");
  EXPECT_EQ(rewritten(R"({"outputs":[{"parameters":{"binary_data_size":96}}]})"), "(whole)");
}

// The replica would read the client's words as being about our region.
TEST(SharedRequest, WhatSpeaksOfSharedMemoryItselfOrHidesItsKeysStaysAsItIs) {
  EXPECT_EQ(
      rewritten(of_inputs(R"({"parameters":{"binary_data_size":96,"shared_memory_offset":0}})")),
      "(whole)");
  EXPECT_EQ(rewritten(of_inputs(
                R"({"parameters":{"binary_data_size":96,"shared\u005fmemory_offset":0}})")),
            "(whole)");
  EXPECT_EQ(
      rewritten(of_inputs(R"({"parameters":{"binary_data_size":96},"param\u0065ters":{"x":0}})")),
      "(whole)");
}

TEST(SharedRequest, WhatIsNoJsonStaysAsItIs) {
  const std::string whole = of_inputs(R"({"parameters":{"binary_data_size":96}})");
  ASSERT_NE(rewritten(whole), "(whole)");

  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(rewritten(std::string_view(whole).substr(0, size)), "(whole)") << size;
  }
  EXPECT_EQ(rewritten(whole + "x"), "(whole)");
  EXPECT_EQ(rewritten(R"({"inputs":[{"parameters":{"binary_data_size":}}]})"), "(whole)");
  EXPECT_EQ(rewritten(R"({"inputs":[{"parameters":{"a":"\)"), "(whole)");
}

}  // namespace
}  // namespace septet::balance
