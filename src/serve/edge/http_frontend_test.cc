// The whole server over a Unix socket: every endpoint's answers and refusals.
#include "serve/edge/http_frontend.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/test_server.h"

namespace septet::serve {
namespace {

using nlohmann::json;
using test_support::HttpClient;
using test_support::HttpReply;
using test_support::TestServer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(const HttpReply& reply) {
  const json body = json::parse(reply.body, nullptr, false);
  return body.is_object() ? body.value("error", "") : "not JSON: " + reply.body;
}

// An infer body for model simple with all elements 5 and 3.
std::string simple_body(int batch = 1, const std::string& more = {}) {
  json body;
  for (const auto& [name, value] : {std::pair("INPUT0", 5), std::pair("INPUT1", 3)}) {
    body["inputs"].push_back(
        {{"name", name},
         {"datatype", "INT32"},
         {"shape", {batch, 16}},
         {"data", std::vector<int>(static_cast<std::size_t>(batch * 16), value)}});
  }
  std::string text = body.dump();
  if (!more.empty()) {
    text.back() = ',';
    text += more + "}";
  }
  return text;
}

class HttpFrontendTest : public ::testing::Test {
 protected:
  void start_simple(InferenceServerOptions options = {}, HttpServerOptions http = {}) {
    server_.add_simple();
    server_.start(std::move(options), http);
  }

  TestServer server_;
};

TEST_F(HttpFrontendTest, AnswersHealthWithEmptyBodies) {
  start_simple();
  HttpClient client = server_.connect();

  for (const char* path : {"/v2/health/live", "/v2/health/ready", "/v2/models/simple/ready"}) {
    const HttpReply reply = client.get(path);
    EXPECT_EQ(reply.status, 200U) << path;
    EXPECT_EQ(reply.body, "") << path;
  }
  EXPECT_EQ(client.get("/v2/models/other/ready").status, 400U);
}

TEST_F(HttpFrontendTest, DescribesServerAndModel) {
  start_simple();
  HttpClient client = server_.connect();

  const json server = json::parse(client.get("/v2").body);
  const json model = json::parse(client.get("/v2/models/simple").body);
  const json config = json::parse(client.get("/v2/models/simple/config").body);

  EXPECT_EQ(server["name"], "triton");
  EXPECT_THAT(server["extensions"].get<std::vector<std::string>>(),
              ::testing::Contains("statistics"));
  EXPECT_EQ(model["versions"], json::array({"1"}));
  EXPECT_EQ(model["platform"], "fake");
  EXPECT_EQ(model["inputs"][0]["shape"], json::array({-1, 16}));
  EXPECT_EQ(config["max_batch_size"], 8);
  EXPECT_EQ(config["input"][0]["optional"], false);
}

TEST_F(HttpFrontendTest, InfersWithJsonTensors) {
  start_simple();
  HttpClient client = server_.connect();

  const HttpReply reply = client.post("/v2/models/simple/infer", simple_body(2, R"("id":"seven")"));

  ASSERT_EQ(reply.status, 200U) << reply.body;
  const json body = json::parse(reply.body);
  EXPECT_EQ(body["id"], "seven");
  EXPECT_EQ(body["model_version"], "1");
  EXPECT_EQ(body["outputs"][0]["shape"], json::array({2, 16}));
  EXPECT_EQ(body["outputs"][0]["data"][31], 8);
  EXPECT_EQ(body["outputs"][1]["data"][0], 2);
}

TEST_F(HttpFrontendTest, InfersWithBinaryTensorsAndClasses) {
  start_simple();
  HttpClient client = server_.connect();
  const std::string head =
      R"({"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1,16],"parameters":)"
      R"({"binary_data_size":64}},{"name":"INPUT1","datatype":"INT32","shape":[1,16],)"
      R"("parameters":{"binary_data_size":64}}],"outputs":[{"name":"OUTPUT0","parameters":)"
      R"({"classification":1,"binary_data":true}}]})";
  std::string tensors(128, '\0');
  tensors[4 * 9] = 7;

  const HttpReply reply =
      client.post("/v2/models/simple/infer", head + tensors,
                  "Inference-Header-Content-Length: " + std::to_string(head.size()) + "\r\n");

  ASSERT_EQ(reply.status, 200U) << reply.body;
  const std::size_t json_bytes = std::stoul(reply.fields.at("inference-header-content-length"));
  EXPECT_EQ(reply.fields.at("content-type"), "application/octet-stream");
  EXPECT_EQ(json::parse(reply.body.substr(0, json_bytes))["outputs"][0]["datatype"], "BYTES");
  EXPECT_EQ(reply.body.substr(json_bytes), std::string("\3\0\0\0", 4) + "7:9");
}

TEST_F(HttpFrontendTest, TakesARawBodyAsTheOnlyInput) {
  server_.add_copy("raw", "TYPE_UINT8");
  server_.start();
  HttpClient client = server_.connect();

  const HttpReply reply =
      client.post("/v2/models/raw/infer", "seven bytes", "Inference-Header-Content-Length: 0\r\n");

  ASSERT_EQ(reply.status, 200U) << reply.body;
  EXPECT_THAT(reply.body, ::testing::EndsWith("seven bytes"));
}

TEST_F(HttpFrontendTest, CarriesEveryDatatypeThroughUnchanged) {
  const std::map<std::string, std::string> types = {{"BOOL", std::string("\1\0", 2)},
                                                    {"UINT8", "ab"},
                                                    {"INT8", "ab"},
                                                    {"UINT16", "abcd"},
                                                    {"INT16", "abcd"},
                                                    {"FP16", "abcd"},
                                                    {"BF16", "abcd"},
                                                    {"INT32", "abcdefgh"},
                                                    {"UINT32", "abcdefgh"},
                                                    {"FP32", "abcdefgh"},
                                                    {"INT64", "abcdefghijklmnop"},
                                                    {"UINT64", "abcdefghijklmnop"},
                                                    {"FP64", "abcdefghijklmnop"},
                                                    {"BYTES", std::string("\1\0\0\0a\0\0\0\0", 9)}};
  for (const auto& [type, bytes] : types) {
    server_.add_copy("m" + type, type == "BYTES" ? "TYPE_STRING" : "TYPE_" + type);
  }
  server_.start();
  HttpClient client = server_.connect();

  for (const auto& [type, bytes] : types) {
    const json head = {{"inputs",
                        {{{"name", "IN"},
                          {"datatype", type},
                          {"shape", {2}},
                          {"parameters", {{"binary_data_size", bytes.size()}}}}}},
                       {"parameters", {{"binary_data_output", true}}}};
    const std::string text = head.dump();
    const HttpReply reply =
        client.post("/v2/models/m" + type + "/infer", text + bytes,
                    "Inference-Header-Content-Length: " + std::to_string(text.size()) + "\r\n");
    EXPECT_EQ(reply.status, 200U) << type << reply.body;
    EXPECT_THAT(reply.body, ::testing::EndsWith(bytes)) << type;
  }
}

TEST_F(HttpFrontendTest, RefusesWithTheProtocolsErrorAndLivesOn) {
  start_simple();
  HttpClient client = server_.connect();
  const auto post = [&](const std::string& body) {
    return client.post("/v2/models/simple/infer", body);
  };

  EXPECT_EQ(client.post("/v2/models/nope/infer", simple_body()).status, 404U);
  EXPECT_EQ(error_of(client.get("/v2/models/nope")),
            "Request for unknown model: 'nope' is not found");
  EXPECT_EQ(post("{").status, 400U);
  EXPECT_THAT(error_of(post(simple_body(9))),
              HasSubstr("[request id: <id_unknown>] inference request batch-size must be <= 8"));
  EXPECT_THAT(error_of(client.post("/v2/models/simple/versions/7/infer", simple_body())),
              HasSubstr("version 7 is not found"));
  EXPECT_EQ(client.post("/v2/health/live", "").status, 405U);
  EXPECT_EQ(client.get("/v2/models/simple/infer").status, 405U);
  EXPECT_EQ(client.get("/v3").status, 404U);
  EXPECT_EQ(post(simple_body()).status, 200U);
}

TEST_F(HttpFrontendTest, AFailingEngineIsAnErrorOfTheRequestOnly) {
  server_.add_copy("bad", "TYPE_INT8", "", "fail");
  server_.start();
  HttpClient client = server_.connect();
  const std::string body =
      R"({"id":"x","inputs":[{"name":"IN","datatype":"INT8","shape":[1],"data":[1]}]})";

  const HttpReply reply = client.post("/v2/models/bad/infer", body);

  EXPECT_EQ(reply.status, 500U);
  EXPECT_EQ(error_of(reply), "[request id: x] the engine failed as told");
  const json stats = json::parse(client.get("/v2/models/bad/stats").body)["model_stats"][0];
  EXPECT_EQ(stats["inference_stats"]["fail"]["count"], 1);
  EXPECT_EQ(stats["execution_count"], 0);
}

TEST_F(HttpFrontendTest, CountsRequestsExecutionsAndInferences) {
  start_simple();
  HttpClient client = server_.connect();
  client.post("/v2/models/simple/infer", simple_body(3));
  client.post("/v2/models/simple/infer", simple_body(1));

  const json stats = json::parse(client.get("/v2/models/stats").body)["model_stats"][0];

  EXPECT_EQ(stats["name"], "simple");
  EXPECT_EQ(stats["inference_count"], 4);
  EXPECT_EQ(stats["execution_count"], 2);
  for (const char* counter :
       {"success", "queue", "compute_input", "compute_infer", "compute_output"}) {
    EXPECT_EQ(stats["inference_stats"][counter]["count"], 2) << counter;
  }
  EXPECT_EQ(stats["batch_stats"].size(), 2U);
  EXPECT_GT(stats["last_inference"], 0);
}

TEST_F(HttpFrontendTest, QueuedRequestsShareABatch) {
  server_.add_copy("held", "TYPE_INT8", "max_batch_size: 8 dynamic_batching { }", "hold");
  server_.start();
  const std::string body =
      R"({"inputs":[{"name":"IN","datatype":"INT8","shape":[1,2],"data":[1,2]}]})";
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server_.connect()));
    clients.back()->send(
        fmt::format("POST /v2/models/held/infer HTTP/1.1\r\nHost: x\r\n"
                    "Content-Length: {}\r\n\r\n{}",
                    body.size(), body));
    if (i == 0) {
      server_.backend().await_held(1);
    }
  }
  HttpClient watcher = server_.connect();
  const auto pending = [&] { return watcher.get("/metrics").body; };
  while (pending().find("pending_request_count{model=\"held\",version=\"1\"} 3") ==
         std::string::npos) {
  }

  server_.backend().release();

  for (auto& client : clients) {
    EXPECT_EQ(client->receive().status, 200U);
  }
  EXPECT_THAT(server_.backend().batches(), ElementsAre(1, 3));
}

TEST_F(HttpFrontendTest, AFullQueueIsUnavailable) {
  server_.add_copy("full", "TYPE_INT8",
                   "max_batch_size: 1 dynamic_batching { default_queue_policy "
                   "{ max_queue_size: 1 } }",
                   "hold");
  server_.start();
  const std::string body =
      R"({"inputs":[{"name":"IN","datatype":"INT8","shape":[1,1],"data":[1]}]})";
  const std::string request =
      fmt::format("POST /v2/models/full/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}",
                  body.size(), body);
  HttpClient first = server_.connect();
  first.send(request);
  server_.backend().await_held(1);
  HttpClient second = server_.connect();
  HttpClient third = server_.connect();
  second.send(request);
  third.send(request);

  // One of the two waits, the other is turned away at once.
  HttpClient watcher = server_.connect();
  while (watcher.get("/metrics").body.find("reason=\"REJECTED\"} 1") == std::string::npos) {
  }
  server_.backend().release();

  const std::vector<unsigned> statuses = {second.receive().status, third.receive().status};
  EXPECT_THAT(statuses, ::testing::UnorderedElementsAre(200U, 503U));
  EXPECT_EQ(first.receive().status, 200U);
}

TEST_F(HttpFrontendTest, ARequestsTimeoutEndsItsWaitWhileTheInstanceIsBusy) {
  server_.add_copy("slow", "TYPE_INT8", "", "hold");
  server_.start();
  const auto body = [](const std::string& more) {
    return R"({"inputs":[{"name":"IN","datatype":"INT8","shape":[1],"data":[1]}])" + more + "}";
  };
  HttpClient first = server_.connect();
  const std::string plain = body("");
  first.send(
      fmt::format("POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {}"
                  "\r\n\r\n{}",
                  plain.size(), plain));
  server_.backend().await_held(1);
  HttpClient second = server_.connect();

  const HttpReply reply =
      second.post("/v2/models/slow/infer", body(R"(,"parameters":{"timeout":1000})"));

  EXPECT_EQ(reply.status, 503U);
  EXPECT_THAT(error_of(reply), HasSubstr("Request timeout expired"));
  server_.backend().release();
  EXPECT_EQ(first.receive().status, 200U);
}

TEST_F(HttpFrontendTest, LoadsAndUnloadsInExplicitModeOnly) {
  server_.add_simple();
  server_.add_copy("other", "TYPE_INT8");
  server_.start({.control = InferenceServerOptions::Control::kExplicit});
  HttpClient client = server_.connect();

  EXPECT_EQ(client.post("/v2/repository/models/simple/unload", "").status, 200U);
  EXPECT_EQ(client.get("/v2/models/simple/ready").status, 400U);
  const json index = json::parse(client.post("/v2/repository/index", "{}").body);
  EXPECT_EQ(index[1]["state"], "UNAVAILABLE");
  EXPECT_EQ(index[1]["reason"], "unloaded");
  EXPECT_EQ(json::parse(client.post("/v2/repository/index", R"({"ready":true})").body).size(), 1U);
  EXPECT_EQ(client.post("/v2/models/simple/infer", simple_body()).status, 503U);
  EXPECT_EQ(client.post("/v2/repository/models/simple/load", "{}").status, 200U);
  EXPECT_EQ(client.post("/v2/models/simple/infer", simple_body()).status, 200U);
  EXPECT_THAT(error_of(client.post("/v2/repository/models/wrong_model_name/load", "{}")),
              HasSubstr("failed to load 'wrong_model_name', failed to poll from model repository"));
  EXPECT_EQ(client.post("/v2/repository/models/..%2fx/load", "{}").status, 404U);
}

TEST_F(HttpFrontendTest, RefusesLoadWhenControlIsNotExplicit) {
  start_simple();
  HttpClient client = server_.connect();

  EXPECT_EQ(client.post("/v2/repository/models/simple/load", "").status, 503U);
}

TEST_F(HttpFrontendTest, ABrokenModelLeavesTheOthersAlone) {
  server_.add_simple();
  server_.folder().write("broken/config.pbtxt", "max_batch_size: lots\n");
  server_.folder().write("broken/1/model.bin", "");
  server_.start();
  HttpClient client = server_.connect();

  EXPECT_EQ(client.get("/v2/health/ready").status, 400U);
  EXPECT_EQ(client.post("/v2/models/simple/infer", simple_body()).status, 200U);
  const json index = json::parse(client.post("/v2/repository/index", "").body);
  EXPECT_EQ(index[0]["state"], "UNAVAILABLE");
  EXPECT_THAT(index[0]["reason"].get<std::string>(), HasSubstr("config.pbtxt:1:17"));
}

TEST_F(HttpFrontendTest, AReloadWithAConfigurationOfTheRequestReplacesTheModel) {
  server_.add_simple();
  server_.start({.control = InferenceServerOptions::Control::kExplicit});
  HttpClient client = server_.connect();
  json config = json::parse(client.get("/v2/models/simple/config").body);
  config["max_batch_size"] = 2;

  const HttpReply reply = client.post("/v2/repository/models/simple/load",
                                      json{{"parameters", {{"config", config.dump()}}}}.dump());

  EXPECT_EQ(reply.status, 200U) << reply.body;
  EXPECT_EQ(client.post("/v2/models/simple/infer", simple_body(3)).status, 400U);
}

TEST_F(HttpFrontendTest, SettingsAreReadAndChanged) {
  start_simple();
  HttpClient client = server_.connect();

  EXPECT_EQ(json::parse(client.get("/v2/logging").body)["log_info"], true);
  const json changed = json::parse(client.post("/v2/logging", R"({"log_info":false})").body);
  EXPECT_EQ(changed["log_info"], false);
  EXPECT_EQ(client.post("/v2/logging", R"({"log_file":"/etc/x"})").status, 501U);
  EXPECT_EQ(client.post("/v2/logging", R"({"log_info":1})").status, 400U);
  EXPECT_EQ(json::parse(client.get("/v2/trace/setting").body)["trace_level"], json::array({"OFF"}));
  EXPECT_EQ(client.post("/v2/trace/setting", R"({"trace_level":["TIMESTAMPS"]})").status, 501U);
  EXPECT_EQ(client.get("/v2/models/nope/trace/setting").status, 404U);
}

TEST_F(HttpFrontendTest, MetricsNameTheModelsAndTheirCounts) {
  start_simple();
  HttpClient client = server_.connect();
  client.post("/v2/models/simple/infer", simple_body(2));

  const std::string text = client.get("/metrics").body;

  EXPECT_THAT(text, HasSubstr("nv_inference_request_success{model=\"simple\",version=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("nv_inference_count{model=\"simple\",version=\"1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE septet_serve_busy_seconds_total counter\n"));
}

}  // namespace
}  // namespace septet::serve
