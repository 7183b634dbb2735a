#include "balance/grpc_route.h"

#include <gtest/gtest.h>

namespace septet::balance {
namespace {

TEST(FindGrpcKind, KnowsTheServicesMethodsAndTakesOthersForStreams) {
  const std::string service = "/inference.GRPCInferenceService/";

  EXPECT_EQ(find_grpc_kind(service + "ModelInfer"), GrpcKind::kInfer);
  EXPECT_EQ(find_grpc_kind(service + "ModelStreamInfer"), GrpcKind::kStream);
  EXPECT_EQ(find_grpc_kind(service + "ModelStatistics"), GrpcKind::kStatistics);
  EXPECT_EQ(find_grpc_kind("/grpc.health.v1.Health/Check"), GrpcKind::kHealthCheck);
  EXPECT_EQ(find_grpc_kind("/other.Service/ModelInfer"), GrpcKind::kStream);
  EXPECT_EQ(find_grpc_kind(""), GrpcKind::kStream);
}

TEST(PeekModel, FindsFieldOneWhereverItStands) {
  const std::string name(
      "\x0a\x03"
      "net",
      5);
  const std::string id("\x1a\x02id", 4);
  const std::string varint("\x20\xff\x01", 3);

  EXPECT_EQ(peek_model(framed_message(name + id)), "net");
  EXPECT_EQ(peek_model(framed_message(id + varint + name)), "net");
  EXPECT_EQ(peek_model(framed_message(id)), "");
}

TEST(PeekModel, IsEmptyForWhatIsCutCompressedOrMalformed) {
  const std::string whole = framed_message(std::string("\x0a\x03net", 5));
  std::string compressed = whole;
  compressed[0] = 1;

  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_EQ(peek_model(std::string_view(whole).substr(0, bytes)), "");
  }
  EXPECT_EQ(peek_model(compressed), "");
  EXPECT_EQ(peek_model(framed_message(std::string("\x0a\x7fnet", 5))), "");
  EXPECT_EQ(peek_model(framed_message("\x0b")), "");
  EXPECT_EQ(peek_model(framed_message(std::string(12, '\xff'))), "");
}

TEST(GrpcTimeout, IsReadInAllUnits) {
  EXPECT_EQ(parse_grpc_timeout("2S"), seconds(2));
  EXPECT_EQ(parse_grpc_timeout("1500m"), milliseconds(1500));
  EXPECT_EQ(parse_grpc_timeout("1H"), seconds(3600));
  for (const char* bad : {"", "S", "5", "5x", "-5S", "999999999S", "99H"}) {
    EXPECT_FALSE(parse_grpc_timeout(bad)) << bad;
  }
}

TEST(GrpcMessage, IsPercentEncoded) { EXPECT_EQ(grpc_message_text("a 100% \n"), "a 100%25 %0A"); }

TEST(FramedSize, IsKnownOnceThePrefixIsComplete) {
  EXPECT_EQ(framed_size(std::string("\0\0\0\1", 4)), std::nullopt);
  EXPECT_EQ(framed_size(std::string("\0\0\0\1\2", 5)), 5U + 258U);
}

}  // namespace
}  // namespace septet::balance
