// What real clients sent, sent again: every reply must mean what theirs meant. The captured
// exchanges lie outside the project (SEPTET_SHARED, or ../shared); without them the tests are
// skipped. Statuses: 200 stays 200, an error stays an error (its number differs between releases).
#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "inference/edge/proto/grpc_service.grpc.pb.h"
#include "serve/edge/grpc_server.h"
#include "support/test_server.h"

namespace septet::serve {
namespace {

namespace proto = ::inference;
using nlohmann::json;
using test_support::HttpClient;
using test_support::HttpReply;
using test_support::TestServer;

constexpr std::array<const char*, 11> kHttpCaptures = {
    "http_image_client.jsonl",           "http_perf_analyzer.jsonl",
    "http_perf_analyzer_sequence.jsonl", "http_perf_analyzer_system_shm.jsonl",
    "http_simple_dyna_sequence.jsonl",   "http_simple_health_metadata.jsonl",
    "http_simple_infer.jsonl",           "http_simple_model_control.jsonl",
    "http_simple_sequence.jsonl",        "http_simple_string_infer.jsonl",
    "http_simple_system_shm.jsonl"};
constexpr std::array<const char*, 3> kGrpcCaptures = {
    "grpc_image_client.jsonl", "grpc_image_client_streaming.jsonl", "grpc_perf_analyzer.jsonl"};

std::string captures_folder() {
  const char* shared = std::getenv("SEPTET_SHARED");
  return std::string(shared != nullptr ? shared : "../shared") + "/data/protocol/";
}

std::vector<json> exchanges(const std::string& file) {
  std::ifstream lines(captures_folder() + file);
  std::vector<json> all;
  for (std::string line; std::getline(lines, line);) {
    all.push_back(json::parse(line));
  }
  return all;
}

constexpr const char* kSequence = R"(backend: "fake" max_batch_size: 8
input {{ name: "INPUT" data_type: TYPE_INT32 dims: 1 }}
output {{ name: "OUTPUT" data_type: TYPE_INT32 dims: 1 }}
parameters {{ key: "compute" value {{ string_value: "sequence" }} }}
sequence_batching {{
  control_input {{ name: "START" control {{ kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] }} }}
  {} }})";

// The models that the clients asked for, on the fake engine.
void add_models(TestServer& server) {
  server.add_simple();
  const auto add = [&](const std::string& name, const std::string& config) {
    server.folder().write(name + "/config.pbtxt", config);
    server.folder().write(name + "/1/model.bin", "");
  };
  std::string strings = "backend: \"fake\" max_batch_size: 8\n";
  for (const char* tensor : {"input { name: \"INPUT0\"", "input { name: \"INPUT1\"",
                             "output { name: \"OUTPUT0\"", "output { name: \"OUTPUT1\""}) {
    strings += fmt::format("{} data_type: TYPE_STRING dims: 16 }}\n", tensor);
  }
  add("simple_string", strings + "parameters { key: \"compute\" value { string_value: \"sum\" } }");
  add("simple_sequence", fmt::format(kSequence, "direct { }"));
  const std::string dynamic =
      "control_input { name: \"END\" control { kind: CONTROL_SEQUENCE_END int32_false_true: [0, 1] "
      "} } control_input { name: \"CORRID\" control { kind: CONTROL_SEQUENCE_CORRID data_type: "
      "TYPE_UINT64 } } oldest { max_candidate_sequences: 1024 }";
  add("simple_dyna_sequence", fmt::format(kSequence, dynamic));
  add("simple_string_dyna_sequence", fmt::format(kSequence, dynamic));
  add("densenet_onnx", R"(backend: "fake" max_batch_size: 0
input { name: "data_0" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [3, 224, 224]
        reshape { shape: [1, 3, 224, 224] } }
output { name: "fc6_1" data_type: TYPE_FP32 dims: 1000 reshape { shape: [1, 1000, 1, 1] } }
parameters { key: "compute" value { string_value: "zeros" } })");
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// The captures keep the first 64 bytes; of simple_string's 166 the rest is known to be this.
std::string string_tensors() {
  std::vector<std::byte> bytes;
  for (int i = 0; i < 16; ++i) {
    inference::append_bytes_element(bytes, std::to_string(i));
  }
  for (int i = 0; i < 16; ++i) {
    inference::append_bytes_element(bytes, "1");
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string binary_part(const json& exchange) {
  if (!exchange.contains("request_binary_bytes")) {
    return {};
  }
  if (exchange["path"].get<std::string>().find("simple_string/") != std::string::npos) {
    return string_tensors();
  }
  std::string bytes = from_hex(exchange.value("request_binary_first_64_hex", ""));
  bytes.resize(exchange["request_binary_bytes"].get<std::size_t>());
  return bytes;
}

// Whether got says all that expected says: the same keys, and the same values where `exact`.
void expect_covered(const json& expected, const json& got, bool exact, const std::string& where) {
  if (expected.is_object()) {
    ASSERT_TRUE(got.is_object()) << where;
    for (const auto& [key, value] : expected.items()) {
      ASSERT_TRUE(got.contains(key)) << where << "." << key;
      expect_covered(value, got[key], exact, where + "." + key);
    }
  } else if (expected.is_array() && !expected.empty() && expected[0].is_object()) {
    ASSERT_TRUE(got.is_array() && got.size() >= expected.size()) << where;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expect_covered(expected[i], got[i], exact, fmt::format("{}[{}]", where, i));
    }
  } else if (exact) {
    EXPECT_EQ(expected, got) << where;
  } else {
    EXPECT_EQ(expected.is_number(), got.is_number()) << where;
    EXPECT_EQ(expected.is_string(), got.is_string()) << where;
    EXPECT_EQ(expected.is_boolean(), got.is_boolean()) << where;
  }
}

// Objects that a client would have made before it registered them, under names of this test's own.
class SharedObjects {
 public:
  ~SharedObjects() {
    for (const std::string& key : keys_) {
      ::shm_unlink(key.c_str());
    }
  }
  std::string make(const std::string& key, std::size_t size) {
    const std::string own = fmt::format("/septet_{}_{}", ::getpid(), key.substr(1));
    const os::UniqueFd fd(::shm_open(own.c_str(), O_CREAT | O_RDWR, 0600));
    CHECK(fd.valid() && ::ftruncate(fd.get(), static_cast<off_t>(size)) == 0);
    keys_.push_back(own);
    return own;
  }

 private:
  std::vector<std::string> keys_;
};

class ReplayTest : public ::testing::TestWithParam<const char*> {
 protected:
  HttpReply send(HttpClient& client, const json& exchange) {
    const std::string path = exchange["path"];
    if (exchange["method"] == "GET") {
      return client.get(path);
    }
    std::string text = exchange.value("request_json_text", "");
    if (path.ends_with("/register")) {
      json body = json::parse(text);
      body["key"] = objects_.make(
          body["key"], body["byte_size"].get<std::size_t>() + body.value("offset", std::size_t{0}));
      text = body.dump();
    }
    const std::string binary = binary_part(exchange);
    const json headers = exchange["request_headers"];
    std::string fields;
    if (headers.contains("Inference-Header-Content-Length")) {
      fields = fmt::format("Inference-Header-Content-Length: {}\r\n", text.size());
    }
    return client.post(path, text + binary, fields);
  }

  void compare(const json& exchange, const HttpReply& reply) {
    const std::string path = exchange["path"];
    const bool good = exchange["status"] == 200;
    ASSERT_EQ(reply.status == 200, good) << path << " " << reply.body;
    if (!good || exchange["response_json"].is_null()) {
      return;
    }
    const std::size_t json_bytes =
        reply.fields.contains("inference-header-content-length")
            ? std::stoul(reply.fields.at("inference-header-content-length"))
            : reply.body.size();
    const json body = json::parse(reply.body.substr(0, json_bytes));
    if (path.ends_with("/index") || path == "/v2") {
      return;  // what this repository and this server are called is their own
    }
    const bool statistics = path.ends_with("/stats") || path.ends_with("/config");
    json expected = exchange["response_json"];
    if (expected.is_object()) {
      expected.erase("platform");
    }
    if (expected.contains("outputs") && expected["outputs"][0]["datatype"] == "BYTES" &&
        path.find("densenet") != std::string::npos) {
      expected["outputs"][0].erase("parameters");  // how long a class's text is depends on weights
    }
    expect_covered(expected, body, !statistics && !path.ends_with("/status"), path);
    const std::string binary = from_hex(exchange.value("response_binary_first_64_hex", ""));
    const bool computed = path.find("densenet") != std::string::npos ||
                          path.find("simple/") != std::string::npos ||
                          path.find("string_dyna") != std::string::npos;
    if (!computed && !binary.empty()) {
      EXPECT_EQ(reply.body.substr(json_bytes, binary.size()), binary) << path;
    }
  }

  SharedObjects objects_;
  TestServer server_;
};

TEST_P(ReplayTest, EveryReplyMeansTheSame) {
  const std::vector<json> all = exchanges(GetParam());
  if (all.empty()) {
    GTEST_SKIP() << "no captures of " << GetParam() << "; set SEPTET_SHARED";
  }
  add_models(server_);
  server_.start({.control = InferenceServerOptions::Control::kExplicit});
  HttpClient client = server_.connect();

  for (const json& exchange : all) {
    SCOPED_TRACE(exchange["path"].get<std::string>());
    compare(exchange, send(client, exchange));
  }
}

INSTANTIATE_TEST_SUITE_P(Http, ReplayTest, ::testing::ValuesIn(kHttpCaptures));

class GrpcReplayTest : public ::testing::TestWithParam<const char*> {
 protected:
  template <typename Message>
  static Message message_of(const json& value) {
    Message message;
    google::protobuf::util::JsonParseOptions options;
    options.ignore_unknown_fields = true;
    CHECK(google::protobuf::util::JsonStringToMessage(value.dump(), &message, options).ok());
    return message;
  }

  static proto::ModelInferRequest infer_request(json value) {
    const json raw = value.value("raw_input_contents", json::array());
    value.erase("raw_input_contents");
    auto message = message_of<proto::ModelInferRequest>(value);
    for (const json& contents : raw) {
      std::string bytes = from_hex(contents["first_32_hex"]);
      bytes.resize(contents["bytes"].get<std::size_t>());
      message.add_raw_input_contents(std::move(bytes));
    }
    return message;
  }

  static void compare(const json& expected, const proto::ModelInferResponse& got) {
    EXPECT_EQ(expected["model_name"], got.model_name());
    EXPECT_EQ(expected["model_version"], got.model_version());
    EXPECT_EQ(expected.value("id", ""), got.id());
    ASSERT_EQ(static_cast<int>(expected["outputs"].size()), got.outputs_size());
    ASSERT_EQ(got.outputs_size(), got.raw_output_contents_size());
    for (int i = 0; i < got.outputs_size(); ++i) {
      const json& output = expected["outputs"][static_cast<std::size_t>(i)];
      EXPECT_EQ(output["name"], got.outputs(i).name());
      EXPECT_EQ(output["datatype"], got.outputs(i).datatype());
      std::vector<std::string> shape;
      for (const std::int64_t dimension : got.outputs(i).shape()) {
        shape.push_back(std::to_string(dimension));
      }
      EXPECT_EQ(output["shape"], json(shape));
      // How long a class's text is depends on weights; a tensor is as long as theirs.
      if (output["datatype"] != "BYTES") {
        EXPECT_EQ(expected["raw_output_contents"][static_cast<std::size_t>(i)]["bytes"],
                  got.raw_output_contents(i).size());
      }
    }
  }

  // What the stand-in model here has not, and what it is called.
  static json without_own_words(json value) {
    for (json* object : {&value, value.contains("config") ? &value["config"] : &value}) {
      object->erase("platform");
      if (object->contains("output")) {
        (*object)["output"][0].erase("label_filename");
      }
    }
    return value;
  }

  template <typename Request, typename Response>
  void call(grpc::Status (proto::GRPCInferenceService::Stub::*method)(grpc::ClientContext*,
                                                                      const Request&, Response*),
            const json& exchange) {
    grpc::ClientContext context;
    Response response;
    const grpc::Status status =
        (stub_.get()->*method)(&context, message_of<Request>(exchange["request"]), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::string text;
    google::protobuf::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    options.always_print_primitive_fields = true;
    CHECK(google::protobuf::util::MessageToJsonString(response, &text, options).ok());
    const std::string method_name = exchange["method"];
    const bool exact =
        method_name.ends_with("ModelMetadata") || method_name.ends_with("ModelConfig");
    expect_covered(without_own_words(exchange["response"]), json::parse(text), exact, method_name);
  }

  void replay(const json& exchange) {
    const std::string method = exchange["method"];
    const std::string name = method.substr(method.rfind('/') + 1);
    using Stub = proto::GRPCInferenceService::Stub;
    if (name == "ModelMetadata") {
      call(&Stub::ModelMetadata, exchange);
    } else if (name == "ModelConfig") {
      call(&Stub::ModelConfig, exchange);
    } else if (name == "ServerMetadata") {
      call(&Stub::ServerMetadata, exchange);
    } else if (name == "ModelStatistics") {
      call(&Stub::ModelStatistics, exchange);
    } else if (name == "ModelInfer") {
      grpc::ClientContext context;
      proto::ModelInferResponse response;
      const grpc::Status status =
          stub_->ModelInfer(&context, infer_request(exchange["request"]), &response);
      ASSERT_TRUE(status.ok()) << status.error_message();
      compare(exchange["response"], response);
    } else {
      ASSERT_EQ(name, "ModelStreamInfer");
      grpc::ClientContext context;
      auto stream = stub_->ModelStreamInfer(&context);
      const json request = exchange["request"];
      stream->Write(infer_request(request.is_array() ? request[0] : request));
      stream->WritesDone();
      proto::ModelStreamInferResponse response;
      ASSERT_TRUE(stream->Read(&response));
      EXPECT_EQ(response.error_message(), "");
      const json& expected = exchange["response"];
      compare(expected.is_array() ? expected[0] : expected, response.infer_response());
      EXPECT_TRUE(stream->Finish().ok());
    }
  }

  TestServer server_;
  std::unique_ptr<proto::GRPCInferenceService::Stub> stub_;
};

TEST_P(GrpcReplayTest, EveryReplyMeansTheSame) {
  const std::vector<json> all = exchanges(GetParam());
  if (all.empty()) {
    GTEST_SKIP() << "no captures of " << GetParam() << "; set SEPTET_SHARED";
  }
  add_models(server_);
  server_.start();
  GrpcServerOptions options;
  options.endpoint.unix_path = server_.folder().path() + "/grpc.sock";
  const auto grpc = GrpcServer::start(server_.server(), options);
  ASSERT_TRUE(grpc.ok());
  stub_ = proto::GRPCInferenceService::NewStub(grpc::CreateChannel(
      "unix:" + options.endpoint.unix_path, grpc::InsecureChannelCredentials()));

  for (const json& exchange : all) {
    SCOPED_TRACE(exchange["method"].get<std::string>());
    replay(exchange);
  }
  (*grpc)->shutdown(seconds(10));
}

INSTANTIATE_TEST_SUITE_P(Grpc, GrpcReplayTest, ::testing::ValuesIn(kGrpcCaptures));

TEST(Captures, AreAllReplayed) {
  std::error_code none;
  std::set<std::string> there;
  for (const auto& entry : std::filesystem::directory_iterator(captures_folder(), none)) {
    if (entry.path().extension() == ".jsonl") {
      there.insert(entry.path().filename());
    }
  }
  if (there.empty()) {
    GTEST_SKIP() << "no captures; set SEPTET_SHARED";
  }

  std::set<std::string> replayed(kHttpCaptures.begin(), kHttpCaptures.end());
  replayed.insert(kGrpcCaptures.begin(), kGrpcCaptures.end());
  EXPECT_EQ(there, replayed);
}

}  // namespace
}  // namespace septet::serve
