// The real engines behind the whole server: ONNX Runtime with a trained model and with damaged
// ones, and service times out of published profiles.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/prng.h"
#include "serve/edge/onnx_runtime.h"
#include "serve/edge/timed_backend.h"
#include "support/test_server.h"

namespace septet::serve {
namespace {

using nlohmann::json;
using test_support::HttpClient;
using test_support::HttpReply;
using test_support::TestServer;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string file_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class OnnxModels : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto opened = onnx_.open();
    const fs::path digits = fs::path(SEPTET_SOURCE_DIR) / "models/digits";
    model_ = file_text(digits / "1/model.onnx");
    config_ = file_text(digits / "config.pbtxt");
    if (!opened.ok() || model_.empty()) {
      GTEST_SKIP() << (opened.ok() ? "no model of digits" : opened.error().text());
    }
    server_.add_backend(onnx_);
  }

  void add(const std::string& name, const std::string& model) {
    std::string config = config_;
    config.replace(config.find("\"digits\""), 8, "\"" + name + "\"");
    config.replace(config.find("label_filename"), 0, "# ");
    server_.folder().write(name + "/config.pbtxt", config);
    server_.folder().write(name + "/1/model.onnx", model);
  }

  static HttpReply ask(HttpClient& client, const std::string& name, int batch) {
    const json body = {
        {"inputs",
         {{{"name", "image"},
           {"datatype", "FP32"},
           {"shape", {batch, 1, 8, 8}},
           {"data", std::vector<float>(static_cast<std::size_t>(64 * batch), 0.5F)}}}}};
    return client.post("/v2/models/" + name + "/infer", body.dump());
  }

  OnnxRuntime onnx_;  // outlives the server
  TestServer server_;
  std::string model_;
  std::string config_;
};

TEST_F(OnnxModels, ATrainedModelAnswersEveryBatch) {
  add("digits", model_);
  server_.start();
  HttpClient client = server_.connect();

  for (const int batch : {1, 2, 32}) {
    const HttpReply reply = ask(client, "digits", batch);
    ASSERT_EQ(reply.status, 200U) << reply.body;
    EXPECT_EQ(json::parse(reply.body)["outputs"][0]["shape"], json::array({batch, 10}));
  }
  EXPECT_EQ(ask(client, "digits", 33).status, 400U);
}

TEST_F(OnnxModels, AGpuAskedForIsAnsweredByTheCpuAndAWarning) {
  add("digits", model_);
  config_ += "instance_group { kind: KIND_GPU count: 1 }\n";
  add("on_gpu", model_);
  server_.start();
  HttpClient client = server_.connect();

  EXPECT_EQ(ask(client, "on_gpu", 1).status, 200U);
  ASSERT_EQ(server_.warnings().size(), 1U);
  EXPECT_THAT(server_.warnings()[0], HasSubstr("'on_gpu' has instances of KIND_GPU"));
}

TEST_F(OnnxModels, ADamagedModelFileIsAnErrorAndLeavesTheOthersAlone) {
  add("digits", model_);
  add("empty", "");
  add("text", "this is no model\n");
  add("short", model_.substr(0, model_.size() / 2));
  Prng prng(1);
  std::string noise(20'000, '\0');
  for (char& byte : noise) {
    byte = static_cast<char>(prng.below(256));
  }
  add("noise", noise);
  server_.start({.control = InferenceServerOptions::Control::kExplicit});
  HttpClient client = server_.connect();

  for (const char* broken : {"empty", "text", "short", "noise"}) {
    EXPECT_EQ(client.get(fmt::format("/v2/models/{}/ready", broken)).status, 400U) << broken;
    const HttpReply reply = client.post(fmt::format("/v2/repository/models/{}/load", broken), "");
    EXPECT_EQ(reply.status, 400U) << broken;
    EXPECT_THAT(reply.body, HasSubstr("failed to load")) << broken;
  }
  EXPECT_EQ(ask(client, "digits", 1).status, 200U);
}

// A model whose bytes were changed may load or not; it must not take the server with it.
TEST_F(OnnxModels, AModelWithChangedBytesDisturbsNoOther) {
  Prng prng(2);
  for (int i = 0; i < 24; ++i) {
    std::string changed = model_;
    changed[prng.below(changed.size())] = static_cast<char>(prng.below(256));
    changed[prng.below(2000)] = static_cast<char>(prng.below(256));
    add(fmt::format("changed_{}", i), changed);
  }
  add("digits", model_);
  server_.start();
  HttpClient client = server_.connect();

  for (int i = 0; i < 24; ++i) {
    const std::string name = fmt::format("changed_{}", i);
    if (client.get("/v2/models/" + name + "/ready").status == 200) {
      EXPECT_NE(ask(client, name, 1).status, 0U) << name;
    }
  }
  EXPECT_EQ(ask(client, "digits", 1).status, 200U);
}

constexpr const char* kTimedConfig = R"(backend: "timed" max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: 4 }
output { name: "OUT" data_type: TYPE_FP32 dims: 2 }
)";

const std::string kTimedBody =
    R"({"inputs":[{"name":"IN","datatype":"FP32","shape":[2,4],"data":[1,2,3,4,5,6,7,8]}]})";

TEST(TimedModels, TakeThePublishedProfilesWhereTheyLie) {
  const char* shared = std::getenv("SEPTET_SHARED");
  const fs::path table = fs::path(shared != nullptr ? shared : "../shared") /
                         "data/parvagpu/prof_data/densenet121.csv";
  if (!fs::exists(table)) {
    GTEST_SKIP() << "no profiles at " << table;
  }
  TimedBackend timed({.service_times_path = table.string(), .slice = "2g.10gb"});
  TestServer server;
  server.add_backend(timed);
  server.folder().write("dense/config.pbtxt", kTimedConfig);
  server.folder().write("dense/1/.keep", "");
  server.start();
  HttpClient client = server.connect();

  const HttpReply reply = client.post("/v2/models/dense/infer", kTimedBody);

  ASSERT_EQ(reply.status, 200U) << reply.body;
  EXPECT_EQ(json::parse(reply.body)["outputs"][0]["shape"], json::array({2, 2}));
  EXPECT_EQ(json::parse(client.get("/v2/models/dense").body)["platform"], "timed (simulated)");
  // A batch of 2 on 2g takes longer than 5 ms in the table; sleeping never ends early.
  const json stats = json::parse(client.get("/v2/models/dense/stats").body)["model_stats"][0];
  EXPECT_GT(stats["inference_stats"]["compute_infer"]["ns"].get<std::int64_t>(), 5'000'000);
  EXPECT_FALSE(fs::exists(server.folder().path() + "/dense/densenet121.csv"));
}

TEST(TimedModels, TakeATableOfTheirOwnAndRefuseOneElsewhere) {
  TimedBackend timed;
  TestServer server;
  server.add_backend(timed);
  const auto add = [&](const std::string& name, const std::string& table) {
    server.folder().write(
        name + "/config.pbtxt",
        fmt::format("{}parameters {{ key: \"service_times\" value {{ string_value: \"{}\" }} }}",
                    kTimedConfig, table));
    server.folder().write(name + "/1/.keep", "");
  };
  add("own", "times.csv");
  server.folder().write("own/times.csv",
                        "model,slice,batch,latency_us\nown,1g,1,100\nown,1g,8,400\n");
  add("away", "../own/times.csv");
  add("none", "missing.csv");
  server.start();
  HttpClient client = server.connect();

  EXPECT_EQ(client.post("/v2/models/own/infer", kTimedBody).status, 200U);
  const std::string index = client.post("/v2/repository/index", "").body;
  EXPECT_THAT(index, HasSubstr("'../own/times.csv' leaves the model's folder"));
  EXPECT_THAT(index, HasSubstr("missing.csv"));
}

}  // namespace
}  // namespace septet::serve
