#include "balance/request_nature.h"

#include <gtest/gtest.h>

#include "balance/grpc_route.h"
#include "inference/edge/proto/grpc_service.pb.h"

namespace septet::balance {
namespace {

using ::inference::ModelInferRequest;

std::string framed(const ModelInferRequest& request) {
  return framed_message(request.SerializeAsString());
}

TEST(RequestNature, ReadsTheSequenceOfAJsonBody) {
  const SequenceWish number = read_json_sequence(
      R"({"id":"x","inputs":[{"name":"a","data":[1]}],)"
      R"("parameters":{"sequence_id":7,"sequence_start":true,"sequence_end":false}})");
  const SequenceWish text =
      read_json_sequence(R"({"parameters":{"sequence_id":"7","sequence_end":true}})");

  EXPECT_EQ(number.id, "7");
  EXPECT_TRUE(number.starts);
  EXPECT_FALSE(number.ends);
  EXPECT_EQ(text.id, "\"7\"");
  EXPECT_FALSE(text.starts);
  EXPECT_TRUE(text.ends);
}

TEST(RequestNature, OtherJsonBodiesAreOfNoSequence) {
  for (const std::string_view json :
       {"", "{}", "sequence_id", R"({"parameters":{"sequence_id":0}})",
        R"({"parameters":{"sequence_id":""}})", R"({"parameters":{"sequence_id":[7]}})",
        R"({"parameters":["sequence_id"]})", R"({"parameters":{"sequence_id":7})",
        R"({"inputs":[{"name":"sequence_id","parameters":{"sequence_id":7}}]})"}) {
    EXPECT_EQ(read_json_sequence(json).id, "") << json;
  }
}

TEST(RequestNature, DeepNestingIsHarmless) {
  const std::string deep(100'000, '[');

  EXPECT_EQ(read_json_sequence(R"({"parameters":{"sequence_id":)" + deep).id, "");
}

TEST(RequestNature, ReadsTheSequenceOfAMessage) {
  ModelInferRequest request;
  request.set_model_name("m");
  (*request.mutable_parameters())["sequence_id"].set_int64_param(7);
  (*request.mutable_parameters())["sequence_start"].set_bool_param(true);
  (*request.mutable_parameters())["sequence_end"].set_bool_param(false);
  request.add_raw_input_contents(std::string(1000, 'x'));
  const std::string number = framed(request);
  (*request.mutable_parameters())["sequence_id"].set_string_param("7");
  (*request.mutable_parameters())["sequence_end"].set_bool_param(true);

  EXPECT_EQ(read_proto_sequence(number).id, "7");
  EXPECT_TRUE(read_proto_sequence(number).starts);
  EXPECT_FALSE(read_proto_sequence(number).ends);
  EXPECT_EQ(read_proto_sequence(number.substr(0, number.size() - 500)).id, "7");
  EXPECT_EQ(read_proto_sequence(framed(request)).id, "\"7\"");
  EXPECT_TRUE(read_proto_sequence(framed(request)).ends);
}

TEST(RequestNature, OtherMessagesAreOfNoSequence) {
  ModelInferRequest request;
  (*request.mutable_parameters())["sequence_id"].set_int64_param(0);
  (*request.mutable_parameters())["priority"].set_int64_param(7);

  EXPECT_EQ(read_proto_sequence("").id, "");
  EXPECT_EQ(read_proto_sequence(std::string(5, '\0') + "\x22\xff\xff").id, "");
  EXPECT_EQ(read_proto_sequence(framed(request)).id, "");
}

TEST(RequestNature, FindsSharedMemory) {
  ModelInferRequest request;
  request.add_inputs()->set_name("a");
  request.add_raw_input_contents("shared_memory_region");
  const std::string plain = framed(request);
  (*request.add_outputs()->mutable_parameters())["shared_memory_region"].set_string_param("r");

  EXPECT_FALSE(proto_names_shared_memory(plain));
  EXPECT_TRUE(proto_names_shared_memory(framed(request)));
  EXPECT_TRUE(proto_names_shared_memory(plain.substr(0, plain.size() - 1)));  // cut
  EXPECT_TRUE(proto_names_shared_memory("\x01" + plain.substr(1)));           // compressed
  EXPECT_TRUE(json_names_shared_memory(R"({"parameters":{"shared_memory_region":"r"}})"));
  EXPECT_FALSE(json_names_shared_memory("{}"));
}

}  // namespace
}  // namespace septet::balance
