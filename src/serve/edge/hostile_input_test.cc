// What a hostile client may send behind a well-formed head: names that climb, shapes that overflow,
// sizes below zero or past the end, line ends where they do not belong. Each gets the protocol's
// error, and the next request is served.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/both_interfaces.h"

namespace septet::serve {
namespace {

using nlohmann::json;
using test_support::BothInterfaces;
using test_support::HttpClient;
using test_support::HttpReply;
using ::testing::AnyOf;
using ::testing::HasSubstr;
namespace proto = ::inference;

class HostileInput : public BothInterfaces {
 protected:
  void SetUp() override {
    server_.add_copy("copy", "TYPE_UINT8");
    server_.add_copy("text", "TYPE_STRING");
    start({.control = InferenceServerOptions::Control::kExplicit});
  }
  void TearDown() override {
    // Whatever was sent before: another client is served.
    HttpClient other = server_.connect();
    EXPECT_EQ(
        other.post("/v2/models/copy/infer", "ab", "Inference-Header-Content-Length: 0\r\n").status,
        200U);
    BothInterfaces::TearDown();
  }

  HttpReply infer(const std::string& model, const std::string& input) {
    return client_->post("/v2/models/" + model + "/infer",
                         R"({"inputs":[{"name":"IN",)" + input + "}]}");
  }

  grpc::Status infer_shape(const std::string& datatype, const std::vector<std::int64_t>& shape,
                           const std::string& raw) {
    proto::ModelInferRequest request;
    request.set_model_name(datatype == "BYTES" ? "text" : "copy");
    proto::ModelInferRequest::InferInputTensor& input = *request.add_inputs();
    input.set_name("IN");
    input.set_datatype(datatype);
    input.mutable_shape()->Add(shape.begin(), shape.end());
    request.add_raw_input_contents(raw);
    proto::ModelInferResponse response;
    return infer_over_grpc(request, response);
  }
};

TEST_F(HostileInput, ANameThatClimbsNamesNothing) {
  for (const char* path :
       {"/v2/models/../config", "/v2/models/%2e%2e", "/v2/models/..%2f..%2fetc%2fpasswd",
        "/v2/models/copy%2f1", "/v2/models/copy%00", "/v2/models/%0d%0aX:%20y"}) {
    EXPECT_EQ(client_->get(path).status, 404U) << path;
  }
  for (const char* name : {"..", "%2e%2e", "..%2fcopy", ".hidden", "%2ftmp", "a%00b"}) {
    const std::string target = fmt::format("/v2/repository/models/{}/load", name);
    EXPECT_EQ(client_->post(target, "").status, 404U) << name;
  }
  proto::RepositoryModelLoadRequest load;
  load.set_model_name("../copy");
  proto::RepositoryModelLoadResponse loaded;
  EXPECT_EQ(call(&Stub::RepositoryModelLoad, load, loaded).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(HostileInput, AShapeWhoseProductOverflowsIsRefused) {
  const std::string huge = "4294967296,4294967296,4294967296";
  const std::int64_t large = std::int64_t{1} << 32;

  for (const std::string& shape : {huge, std::string("9223372036854775807,2"),
                                   std::string("18446744073709551615"), std::string("1e3")}) {
    const std::string head = fmt::format(R"("datatype":"UINT8","shape":[{}],)", shape);
    EXPECT_EQ(infer("copy", head + R"("data":[1])").status, 400U) << shape;
    EXPECT_EQ(infer("copy", head + R"("parameters":{"binary_data_size":0})").status, 400U);
  }
  for (const auto& shape : {std::vector<std::int64_t>{large, large, large},
                            std::vector<std::int64_t>{INT64_MAX, 2},
                            {INT64_MAX}}) {
    EXPECT_EQ(infer_shape("UINT8", shape, "").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(infer_shape("BYTES", shape, "").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(HostileInput, ASizeBelowZeroIsRefused) {
  EXPECT_EQ(infer("copy", R"("datatype":"UINT8","shape":[-1],"data":[1])").status, 400U);
  EXPECT_EQ(infer("copy", R"("datatype":"UINT8","shape":[1],"parameters":{"binary_data_size":-1})")
                .status,
            400U);
  EXPECT_EQ(infer_shape("UINT8", {-1}, "a").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(infer_shape("UINT8", {-1, -1}, "a").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  for (const char* length : {"-1", "3", "99999999999999999999", "0x1", ""}) {
    const HttpReply reply =
        client_->post("/v2/models/copy/infer", "{}",
                      fmt::format("Inference-Header-Content-Length: {}\r\n", length));
    EXPECT_EQ(reply.status, 400U) << length;
  }
  const std::string target = "/v2/systemsharedmemory/region/r/register";
  for (const char* body :
       {R"({"key":"/k","byte_size":-1})", R"({"key":"/k","offset":-1,"byte_size":1})",
        R"({"key":"/k","byte_size":1e30})", R"({"key":"../../etc/passwd","byte_size":1})",
        R"({"key":"/a/b","byte_size":1})", R"({"key":7,"byte_size":1})", R"({})"}) {
    EXPECT_THAT(client_->post(target, body).status, AnyOf(400U, 404U)) << body;
  }
}

TEST_F(HostileInput, AStringThatRunsPastItsEndIsRefused) {
  const auto bad = grpc::StatusCode::INVALID_ARGUMENT;

  EXPECT_EQ(infer_shape("BYTES", {1}, std::string("\377\377\377\377a", 5)).error_code(), bad);
  EXPECT_EQ(infer_shape("BYTES", {1}, std::string("\1\0\0", 3)).error_code(), bad);
  EXPECT_EQ(infer_shape("BYTES", {2}, std::string("\1\0\0\0a", 5)).error_code(), bad);
  EXPECT_TRUE(infer_shape("BYTES", {1}, std::string("\1\0\0\0a", 5)).ok());
}

TEST_F(HostileInput, LineEndsOfTheClientNeverReachAHead) {
  const std::string injected = "x\\r\\nX-Injected: yes\\r\\n\\r\\nbody";

  const HttpReply answered = client_->post(
      "/v2/models/copy/infer",
      fmt::format(
          R"({{"id":"{}","inputs":[{{"name":"IN","datatype":"UINT8","shape":[1],"data":[1]}}]}})",
          injected));
  const HttpReply refused =
      infer("copy", fmt::format(R"("datatype":"{}","shape":[1],"data":[1])", injected));
  const HttpReply path = client_->get("/v2/models/a%0d%0aX-Injected:%20yes");

  EXPECT_EQ(answered.status, 200U);
  EXPECT_EQ(refused.status, 400U);
  EXPECT_EQ(path.status, 404U);
  for (const HttpReply& reply : {answered, refused, path}) {
    EXPECT_EQ(reply.fields.count("x-injected"), 0U);
    EXPECT_TRUE(json::accept(reply.body)) << reply.body;
  }
}

TEST_F(HostileInput, DeepOrEndlessJsonIsRefused) {
  EXPECT_EQ(client_->post("/v2/models/copy/infer", std::string(100'000, '[')).status, 400U);
  EXPECT_EQ(
      client_->post("/v2/models/copy/infer", R"({"inputs":[)" + std::string(5000, '{')).status,
      400U);
  EXPECT_EQ(client_->post("/v2/logging", std::string(100'000, '[')).status, 400U);
  EXPECT_EQ(client_->post("/v2/repository/index", std::string(100'000, '[')).status, 400U);
  EXPECT_THAT(infer("copy", R"("datatype":"UINT8","shape":[1],"data":)" + std::string(2000, '[') +
                                "1" + std::string(2000, ']'))
                  .status,
              400U);
}

TEST_F(HostileInput, AClientThatClosesHalfWayThroughABodyIsForgotten) {
  for (const char* framing :
       {"Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n5\r\nab"}) {
    HttpClient half = server_.connect();
    half.send(std::string("POST /v2/models/copy/infer HTTP/1.1\r\nHost: x\r\n") + framing);
    half.finish_sending();

    EXPECT_EQ(half.receive().status, 0U) << framing;
    EXPECT_TRUE(half.is_closed());
  }
}

}  // namespace
}  // namespace septet::serve
