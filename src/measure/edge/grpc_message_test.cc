#include "measure/edge/grpc_message.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace septet::measure {
namespace {

std::string uncompressed(std::string_view bytes) {
  z_stream stream{};
  constexpr int kAnyHead = 15 + 32;
  EXPECT_EQ(inflateInit2(&stream, kAnyHead), Z_OK);
  std::string result(1000, '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  result.resize(stream.total_out);
  inflateEnd(&stream);
  return result;
}

TEST(GrpcMessage, APrefixSaysTheLength) {
  EXPECT_EQ(framed_message("abc"), std::string("\0\0\0\0\3abc", 8));
  EXPECT_EQ(framed_message("abc", MessageCompression::kNone), framed_message("abc"));
}

TEST(GrpcMessage, CompressedMessagesSaySoInTheirPrefix) {
  const std::string text(500, 'x');

  for (const auto compression : {MessageCompression::kGzip, MessageCompression::kDeflate}) {
    const std::string message = framed_message(text, compression);

    EXPECT_EQ(message[0], 1);
    EXPECT_LT(message.size(), 100U);
    EXPECT_EQ(static_cast<std::size_t>(message[4]), message.size() - 5);
    EXPECT_EQ(uncompressed(std::string_view(message).substr(5)), text);
  }
}

TEST(GrpcMessageReader, TakesAMessageInAnyPieces) {
  const std::string bytes = framed_message("hello world");
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    GrpcMessageReader reader;
    reader.start(100);
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      EXPECT_FALSE(reader.done());
      reader.take(std::string_view(bytes).substr(at, piece));
    }
    EXPECT_TRUE(reader.done());
    EXPECT_EQ(reader.text(), "hello world");
  }
}

TEST(GrpcMessageReader, AnEmptyMessageIsWholeWithItsPrefix) {
  GrpcMessageReader reader;
  reader.start(100);

  reader.take(framed_message(""));

  EXPECT_TRUE(reader.done());
}

TEST(GrpcMessageReader, KeepsNoMoreThanItWasTold) {
  GrpcMessageReader reader;
  reader.start(5);

  reader.take(framed_message("hello world"));

  EXPECT_TRUE(reader.done());
  EXPECT_EQ(reader.text(), "hello");
}

TEST(GrpcMessage, StatusCodesBecomeTheNearestOfHttp) {
  EXPECT_EQ(http_status_of_grpc(0), 200U);
  EXPECT_EQ(http_status_of_grpc(14), 503U);
  EXPECT_EQ(http_status_of_grpc(13), 500U);
  EXPECT_EQ(http_status_of_grpc(99), 500U);
}

TEST(GrpcMessage, AStreamsErrorIsItsFirstField) {
  EXPECT_EQ(stream_error(std::string("\x0a\x05oh no")), "oh no");
  EXPECT_FALSE(stream_error(std::string("\x12\x01x")).has_value());
  EXPECT_FALSE(stream_error("").has_value());
}

}  // namespace
}  // namespace septet::measure
