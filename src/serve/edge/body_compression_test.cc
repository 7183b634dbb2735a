// Compressed bodies, over HTTP as gzip and deflate, over gRPC as its messages are.
#include "serve/edge/body_compression.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <zlib.h>

#include "support/both_interfaces.h"

namespace septet::serve {
namespace {

using inference::InferRequest;
using test_support::BothInterfaces;
using test_support::HttpReply;
using test_support::read_reply;
using ::testing::HasSubstr;
namespace proto = ::inference;

class CompressedBodies : public BothInterfaces {
 protected:
  void SetUp() override {
    server_.add_copy("copy", "TYPE_INT32");
    start();
  }

  // So many equal elements.
  static InferRequest sevens(std::int64_t count) {
    InferRequest request{.model_name = "copy"};
    request.binary_outputs = true;
    request.inputs.push_back(
        {.name = "IN",
         .datatype = Datatype::kInt32,
         .shape = {count},
         .data = inference::own_text(std::string(4 * static_cast<std::size_t>(count), '\7'))});
    return request;
  }
};

// The body as gzip or zlib (which HTTP calls deflate) has it.
std::string compressed(std::string_view text, int window_bits) {
  z_stream stream{};
  CHECK(::deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(::deflateBound(&stream, text.size()) + 32, '\0');
  std::string in(text);
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

std::string decompressed(std::string_view text) {
  constexpr int kEitherKind = 15 + 32;
  z_stream stream{};
  CHECK(::inflateInit2(&stream, kEitherKind) == Z_OK);
  std::string in(text);
  std::string out(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(::inflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  ::inflateEnd(&stream);
  return out;
}

TEST_F(CompressedBodies, BodiesMayBeCompressedBothWays) {
  const InferRequest request = sevens(1000);
  const inference::V2Message message = write_request(request);
  const std::string body = message.json + std::string(message.binary[0].text());
  constexpr int kGzip = 15 + 16;
  constexpr int kZlib = 15;
  for (const auto& [name, bits] : {std::pair("gzip", kGzip), std::pair("deflate", kZlib)}) {
    HttpReply reply =
        client_->post("/v2/models/copy/infer", compressed(body, bits),
                      fmt::format("Content-Encoding: {0}\r\nAccept-Encoding: {0}\r\n{1}: {2}\r\n",
                                  name, inference::kJsonLengthHeader, message.json.size()));

    ASSERT_EQ(reply.status, 200U) << name << reply.body;
    EXPECT_EQ(reply.fields.at("content-encoding"), name);
    EXPECT_LT(reply.body.size(), 1000U);
    reply.body = decompressed(reply.body);
    const auto response = read_reply(reply);
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->outputs[0].data.text(), request.inputs[0].data.text());
  }
  EXPECT_EQ(infer_over_http(request).fields.count("content-encoding"), 0U);
}

TEST_F(CompressedBodies, ADamagedUnknownOrSwellingEncodingIsRefused) {
  const auto post = [&](const std::string& body, const std::string& encoding) {
    return client_->post("/v2/models/copy/infer", body, "Content-Encoding: " + encoding + "\r\n");
  };
  constexpr int kGzip = 15 + 16;
  const std::string good = compressed("{\"inputs\":[]}", kGzip);

  EXPECT_EQ(post(good, "br").status, 415U);
  EXPECT_EQ(post("not gzip", "gzip").status, 400U);
  EXPECT_EQ(post(good.substr(0, good.size() - 6), "gzip").status, 400U);
  // 96 MiB of blanks in a few KiB; the server takes bodies of 64 MiB.
  const HttpReply bomb = post(compressed(std::string(96 << 20, ' '), kGzip), "gzip");
  EXPECT_EQ(bomb.status, 400U);
  EXPECT_THAT(bomb.body, HasSubstr("over the limit"));
  EXPECT_EQ(infer_over_http(sevens(1)).status, 200U);
}

TEST_F(CompressedBodies, GrpcMessagesMayBeCompressed) {
  proto::ModelInferRequest message;
  inference::to_message(sevens(1000), message);
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    proto::ModelInferResponse response;

    ASSERT_TRUE(stub_->ModelInfer(&context, message, &response).ok());

    EXPECT_EQ(response.raw_output_contents(0), message.raw_input_contents(0));
  }
}

}  // namespace
}  // namespace septet::serve
