// Sequences, ensembles, warm-up, cache, versions and polling, through the whole server.
#include <fmt/printf.h>
#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <nlohmann/json.hpp>

#include "support/test_server.h"

namespace septet::serve {
namespace {

using nlohmann::json;
using test_support::HttpClient;
using test_support::HttpReply;
using test_support::TestServer;
using ::testing::HasSubstr;

constexpr const char* kSequenceConfig = R"(
backend: "fake" max_batch_size: 8
input { name: "INPUT" data_type: TYPE_INT32 dims: 1 }
output { name: "OUTPUT" data_type: TYPE_INT32 dims: 1 }
parameters { key: "compute" value { string_value: "sequence" } }
sequence_batching { max_sequence_idle_microseconds: 60000000
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } }
  control_input { name: "END" control { kind: CONTROL_SEQUENCE_END int32_false_true: [0, 1] } }
  control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
  oldest { max_candidate_sequences: 4 } })";

class SchedulingTest : public ::testing::Test {
 protected:
  void add_sequence() {
    server_.folder().write("seq/config.pbtxt", kSequenceConfig);
    server_.folder().write("seq/1/model.bin", "");
  }

  static HttpReply in_sequence(HttpClient& client, const json& id, int value, bool start,
                               bool end) {
    json parameters = {{"sequence_start", start}, {"sequence_end", end}};
    if (!id.is_null()) {
      parameters["sequence_id"] = id;
    }
    const json body = {
        {"parameters", parameters},
        {"inputs",
         {{{"name", "INPUT"}, {"datatype", "INT32"}, {"shape", {1, 1}}, {"data", {value}}}}}};
    return client.post("/v2/models/seq/infer", body.dump());
  }

  static int first_value(const HttpReply& reply) {
    return reply.status == 200 ? json::parse(reply.body)["outputs"][0]["data"][0].get<int>() : -1;
  }

  static HttpReply copy(HttpClient& client, const std::string& model, int value) {
    const json body = {
        {"inputs", {{{"name", "IN"}, {"datatype", "INT32"}, {"shape", {1}}, {"data", {value}}}}}};
    return client.post("/v2/models/" + model + "/infer", body.dump());
  }

  TestServer server_;
};

TEST_F(SchedulingTest, SequencesGetTheirControls) {
  add_sequence();
  server_.start();
  HttpClient client = server_.connect();

  EXPECT_EQ(first_value(in_sequence(client, 7, 10, true, false)), 11);
  EXPECT_EQ(first_value(in_sequence(client, "9", 10, true, false)), 11);
  EXPECT_EQ(first_value(in_sequence(client, 7, 20, false, false)), 20);
  EXPECT_EQ(first_value(in_sequence(client, 7, 30, false, true)), 37);
  EXPECT_EQ(first_value(in_sequence(client, "9", 5, false, true)), 14);
}

TEST_F(SchedulingTest, SequencesMustStartAndBeNamed) {
  add_sequence();
  server_.start();
  HttpClient client = server_.connect();

  EXPECT_THAT(in_sequence(client, 7, 1, false, false).body,
              HasSubstr("must specify the START flag"));
  EXPECT_THAT(in_sequence(client, nullptr, 1, true, false).body,
              HasSubstr("must specify a non-zero or non-empty correlation ID"));
  EXPECT_EQ(first_value(in_sequence(client, 7, 1, true, true)), 9);
  EXPECT_EQ(in_sequence(client, 7, 1, false, false).status, 400U);
}

// One request after the other adds to the sequence's total; the first adds to what the file holds.
constexpr const char* kTotalConfig = R"(
backend: "fake" max_batch_size: 4
input { name: "INPUT" data_type: TYPE_INT32 dims: 1 }
output { name: "OUTPUT" data_type: TYPE_INT32 dims: 1 }
parameters { key: "compute" value { string_value: "total" } }
sequence_batching { max_sequence_idle_microseconds: 60000000
  state { input_name: "STATE" output_name: "STATE_OUT" data_type: TYPE_INT32 dims: 1
          initial_state { name: "begin" data_type: TYPE_INT32 dims: 1 %s } } })";

TEST_F(SchedulingTest, AStateGoesFromOneRequestOfItsSequenceToTheNext) {
  server_.folder().write("seq/config.pbtxt", fmt::sprintf(kTotalConfig, "zero_data: true"));
  server_.folder().write("seq/1/model.bin", "");
  server_.start();
  HttpClient client = server_.connect();

  EXPECT_EQ(first_value(in_sequence(client, 1, 5, true, false)), 5);
  EXPECT_EQ(first_value(in_sequence(client, 2, 100, true, false)), 100);
  EXPECT_EQ(first_value(in_sequence(client, 1, 6, false, true)), 11);
  EXPECT_EQ(first_value(in_sequence(client, 2, 1, false, true)), 101);
  EXPECT_EQ(first_value(in_sequence(client, 1, 7, true, true)), 7);
}

TEST_F(SchedulingTest, AStateMayBeginAsAFileOfItsSize) {
  const std::string config = fmt::sprintf(kTotalConfig, "data_file: \"forty\"");
  server_.folder().write("seq/config.pbtxt", config);
  server_.folder().write("seq/1/model.bin", "");
  server_.folder().write("seq/initial_state/forty", std::string("\50\0\0\0", 4));
  server_.folder().write("short/config.pbtxt", config);
  server_.folder().write("short/1/model.bin", "");
  server_.folder().write("short/initial_state/forty", "123");
  server_.folder().write("away/config.pbtxt",
                         fmt::sprintf(kTotalConfig, "data_file: \"../1/model.bin\""));
  server_.folder().write("away/1/model.bin", "");
  server_.start();
  HttpClient client = server_.connect();

  EXPECT_EQ(first_value(in_sequence(client, 1, 2, true, false)), 42);
  EXPECT_EQ(first_value(in_sequence(client, 1, 2, false, true)), 44);
  const std::string index = client.post("/v2/repository/index", "").body;
  EXPECT_THAT(index, HasSubstr("'forty' has 3 bytes, which is not what INT32 [1] holds"));
  EXPECT_THAT(index, HasSubstr("'../1/model.bin' leaves the initial_state folder"));
}

TEST_F(SchedulingTest, AnEnsembleRunsItsStepsAndCountsThem) {
  server_.add_copy("a", "TYPE_INT32");
  server_.add_copy("b", "TYPE_INT32");
  server_.folder().write("both/1/.keep", "");
  server_.folder().write("both/config.pbtxt", R"(
platform: "ensemble"
input { name: "X" data_type: TYPE_INT32 dims: -1 }
output { name: "Y" data_type: TYPE_INT32 dims: -1 }
ensemble_scheduling {
  step { model_name: "b" model_version: -1 input_map { key: "IN" value: "middle" }
         output_map { key: "OUT" value: "Y" } }
  step { model_name: "a" model_version: -1 input_map { key: "IN" value: "X" }
         output_map { key: "OUT" value: "middle" } } })");
  server_.start();
  HttpClient client = server_.connect();
  const json body = {
      {"id", "e"},
      {"inputs", {{{"name", "X"}, {"datatype", "INT32"}, {"shape", {2}}, {"data", {4, 5}}}}}};

  const HttpReply reply = client.post("/v2/models/both/infer", body.dump());

  ASSERT_EQ(reply.status, 200U) << reply.body;
  EXPECT_EQ(json::parse(reply.body)["model_name"], "both");
  EXPECT_EQ(json::parse(reply.body)["outputs"][0]["data"], json::array({4, 5}));
  for (const char* model : {"a", "b", "both"}) {
    const std::string target = std::string("/v2/models/") + model + "/stats";
    EXPECT_EQ(json::parse(client.get(target).body)["model_stats"][0]["execution_count"], 1)
        << model;
  }
}

TEST_F(SchedulingTest, AnEnsembleThatCannotCompleteIsRefusedAtLoad) {
  server_.folder().write("circle/1/.keep", "");
  server_.folder().write("circle/config.pbtxt", R"(
input { name: "X" data_type: TYPE_INT32 dims: -1 }
output { name: "Y" data_type: TYPE_INT32 dims: -1 }
ensemble_scheduling {
  step { model_name: "a" input_map { key: "IN" value: "Y" } output_map { key: "OUT" value: "Y" } } })");
  server_.start();
  HttpClient client = server_.connect();

  EXPECT_THAT(client.post("/v2/repository/index", "").body, HasSubstr("can never start"));
}

TEST_F(SchedulingTest, WarmUpRunsBeforeReadyAndItsFailureIsTheModels) {
  server_.add_copy("warm", "TYPE_INT32",
                   R"(model_warmup { name: "w" count: 2
                      inputs { key: "IN" value { data_type: TYPE_INT32 dims: 3 zero_data: true } } })");
  server_.add_copy("cold", "TYPE_INT32",
                   R"(model_warmup { name: "w" inputs { key: "IN" value { data_type: TYPE_INT32
                      dims: 3 input_data_file: "../../x" } } })");
  server_.start();
  HttpClient client = server_.connect();

  EXPECT_EQ(server_.backend().batches().size(), 2U);
  EXPECT_EQ(client.get("/v2/models/warm/ready").status, 200U);
  EXPECT_THAT(client.post("/v2/repository/index", "").body, HasSubstr("leaves the warmup folder"));
}

TEST_F(SchedulingTest, TheCacheAnswersTheSameRequestAgain) {
  server_.add_copy("cached", "TYPE_INT32", "response_cache { enable: true }");
  server_.start({.cache_bytes = 1 << 20});
  HttpClient client = server_.connect();

  EXPECT_EQ(first_value(copy(client, "cached", 5)), 5);
  EXPECT_EQ(first_value(copy(client, "cached", 5)), 5);
  EXPECT_EQ(first_value(copy(client, "cached", 6)), 6);

  EXPECT_EQ(server_.backend().batches().size(), 2U);
  const json stats =
      json::parse(client.get("/v2/models/cached/stats").body)["model_stats"][0]["inference_stats"];
  EXPECT_EQ(stats["cache_hit"]["count"], 1);
  EXPECT_EQ(stats["cache_miss"]["count"], 2);
  EXPECT_EQ(stats["success"]["count"], 3);
  EXPECT_EQ(stats["compute_infer"]["count"], 2);
}

TEST_F(SchedulingTest, TheVersionPolicyChoosesAndRequestsMayNameOne) {
  server_.add_copy("many", "TYPE_INT32", "version_policy { specific { versions: [1, 3] } }");
  server_.folder().write("many/2/model.bin", "");
  server_.folder().write("many/3/model.bin", "");
  server_.start();
  HttpClient client = server_.connect();

  EXPECT_EQ(json::parse(client.get("/v2/models/many").body)["versions"], json::array({"1", "3"}));
  EXPECT_EQ(json::parse(copy(client, "many", 1).body)["model_version"], "3");
  EXPECT_EQ(copy(client, "many/versions/1", 1).status, 200U);
  EXPECT_EQ(copy(client, "many/versions/2", 1).status, 404U);
}

TEST_F(SchedulingTest, ARepositoryIsFollowed) {
  server_.add_copy("one", "TYPE_INT32");
  server_.start();
  ModelStore& store = server_.store();
  store.follow_repository();
  server_.add_copy("two", "TYPE_INT32");

  EXPECT_TRUE(store.follow_repository().empty());
  EXPECT_TRUE(store.is_ready("two", ""));
  std::filesystem::remove_all(server_.folder().path() + "/one");
  EXPECT_TRUE(store.follow_repository().empty());
  EXPECT_FALSE(store.is_ready("one", ""));
}

TEST_F(SchedulingTest, AReplacedModelFailsNoRequest) {
  server_.add_copy("hot", "TYPE_INT32");
  server_.start({.control = InferenceServerOptions::Control::kExplicit});
  std::atomic<bool> stop = false;
  std::atomic<int> failures = 0;
  std::atomic<int> answers = 0;
  std::thread load([&] {
    HttpClient client = server_.connect();
    while (!stop) {
      failures += copy(client, "hot", 1).status == 200 ? 0 : 1;
      ++answers;
    }
  });
  HttpClient control = server_.connect();

  for (int i = 0; i < 10; ++i) {
    const int before = answers;
    EXPECT_EQ(control.post("/v2/repository/models/hot/load", "").status, 200U);
    while (answers <= before) {
      std::this_thread::yield();
    }
  }
  stop = true;
  load.join();

  EXPECT_EQ(failures, 0);
}

TEST_F(SchedulingTest, AModelAskedForAndNotThereKeepsTheServerFromBeingReady) {
  server_.add_copy("here", "TYPE_INT32");
  server_.start();
  EXPECT_TRUE(server_.server().is_ready());
  std::promise<void> tried;

  server_.server().load_at_start({"nowhere"}, [&] { tried.set_value(); });
  tried.get_future().wait();

  EXPECT_FALSE(server_.server().is_ready());
}

TEST_F(SchedulingTest, RestrictedApisNeedTheirHeader) {
  Restrictions restrictions;

  EXPECT_TRUE(restrictions.add("model-repository,logging:admin=me").ok());
  EXPECT_THAT(restrictions.add("infrence:a=b").error().text(), HasSubstr("inference"));
  EXPECT_FALSE(restrictions.add("nonsense").ok());

  const auto with = [](std::string_view value) {
    return [value](const std::string& name) {
      return name == "admin" ? std::optional(value) : std::nullopt;
    };
  };
  using Kind = V2Path::Kind;
  EXPECT_EQ(restrictions.missing_header(Kind::kLogging, with("you")), "admin");
  EXPECT_EQ(restrictions.missing_header(Kind::kLogging, with("me")), std::nullopt);
  EXPECT_EQ(restrictions.missing_header(Kind::kInfer, with("")), std::nullopt);
}

}  // namespace
}  // namespace septet::serve
