// septet perf against septet's own inference server in this process: what a simulated server cannot
// judge, because it takes every request.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "integration/perf_fixture.h"
#include "support/both_interfaces.h"

namespace septet {
namespace {

using testing::HasSubstr;
using testing::Not;

class PerfServeTest : public test_support::BothInterfaces {
 protected:
  std::string http() { return "unix:" + server_.folder().path() + "/http.sock"; }
  std::string grpc() { return "unix:" + server_.folder().path() + "/grpc.sock"; }

  // Runs to the end; the exit code. What it printed is in output_.
  int run(std::vector<std::string> words) {
    words.insert(words.begin(), "perf");
    test::SeptetRun program(folder_, "perf" + std::to_string(++runs_), words);
    const std::optional<os::ExitStatus> status = program.wait(seconds(120));
    output_ = program.output();
    EXPECT_TRUE(status.has_value());
    return status ? status->code : -1;
  }
  // So many requests of one level; none fails.
  void expect_measured(std::vector<std::string> words) {
    words.insert(words.end(), {"--request-count", "20"});
    EXPECT_EQ(run(words), 0) << output_;
    EXPECT_THAT(output_, HasSubstr("Request count: 20\n"));
    EXPECT_THAT(output_, Not(HasSubstr("Failed requests")));
  }

  test::TestFolder folder_;
  int runs_ = 0;
  std::string output_;
};

TEST_F(PerfServeTest, EveryTypeThatJsonHasIsTakenAsJson) {
  const std::vector<std::string> types = {"BOOL",  "UINT8", "UINT16", "UINT32", "UINT64", "INT8",
                                          "INT16", "INT32", "INT64",  "FP32",   "FP64",   "STRING"};
  for (const std::string& type : types) {
    server_.add_copy(type, "TYPE_" + type);
  }
  start();

  for (const std::string& type : types) {
    SCOPED_TRACE(type);
    expect_measured({"-m", type, "-u", http(), "--shape", "IN:3", "--input-tensor-format", "json",
                     "--output-tensor-format", "json"});
  }
}

TEST_F(PerfServeTest, TypesWithoutAJsonFormAreRefusedAsInputs) {
  server_.add_copy("half", "TYPE_FP16");
  start();

  EXPECT_EQ(run({"-m", "half", "-u", http(), "--shape", "IN:3", "--input-tensor-format", "json"}),
            2);

  EXPECT_THAT(output_, HasSubstr("the inputs cannot be JSON"));
  EXPECT_THAT(output_, HasSubstr("FP16"));
}

TEST_F(PerfServeTest, SharedMemoryAndGrpcGoBesideTheTensorFormats) {
  server_.add_copy("copy", "TYPE_INT32");
  server_.add_copy("half", "TYPE_FP16");
  start();

  expect_measured({"-m", "copy", "-u", http(), "--shape", "IN:3", "--input-tensor-format", "json",
                   "--output-tensor-format", "json", "--shared-memory", "system"});
  expect_measured({"-m", "half", "-u", http(), "--shape", "IN:3", "--input-tensor-format", "json",
                   "--shared-memory", "system"});
  expect_measured({"-m", "copy", "-u", grpc(), "-i", "grpc", "--shape", "IN:3",
                   "--input-tensor-format", "json", "--output-tensor-format", "json"});
}

TEST_F(PerfServeTest, AnswersThatValidationDataDoesNotExpectAreCountedAsWrong) {
  server_.add_copy("copy", "TYPE_INT32");
  start();
  const std::string right = folder_ / "right.json";
  const std::string wrong = folder_ / "wrong.json";
  const std::string data = R"({"data": [{"IN": [1, 2, 3]}], "validation_data": )";
  std::ofstream(right) << data << R"([{"OUT": [1, 2, 3]}]})";
  std::ofstream(wrong) << data << R"([{"OUT": [1, 2, 4]}]})";
  const std::vector<std::vector<std::string>> ways = {
      {"-u", http()},
      {"-u", http(), "--output-tensor-format", "json"},
      {"-u", grpc(), "-i", "grpc"},
      {"-u", grpc(), "-i", "grpc", "--streaming"}};

  for (std::vector<std::string> words : ways) {
    SCOPED_TRACE(testing::PrintToString(words));
    words.insert(words.end(), {"-m", "copy", "--shape", "IN:3", "--input-data"});
    words.push_back(right);
    expect_measured(words);
    words.back() = wrong;
    words.insert(words.end(), {"-p", "100", "-r", "1"});
    EXPECT_EQ(run(words), 1);
    EXPECT_THAT(output_, HasSubstr(" wrong)"));
    EXPECT_THAT(output_, HasSubstr("output 'OUT' differs from byte 8 on"));
  }
}

TEST_F(PerfServeTest, TheServerTracesAsToldBeforeTheRun) {
  server_.add_copy("copy", "TYPE_INT32");
  start({.trace = {.file = folder_ / "trace.json"}});

  for (const std::vector<std::string>& way :
       {std::vector<std::string>{"-u", http()},
        std::vector<std::string>{"-u", grpc(), "-i", "grpc"}}) {
    SCOPED_TRACE(testing::PrintToString(way));
    std::vector<std::string> words = {
        "-m", "copy", "--shape", "IN:3", "--trace-level", "TIMESTAMPS", "--trace-rate", "5"};
    words.insert(words.end(), way.begin(), way.end());
    expect_measured(words);
    const std::string settings = client_->get("/v2/trace/setting").body;
    EXPECT_THAT(settings, HasSubstr(R"("trace_level":["TIMESTAMPS"],"trace_rate":"5")"));
    EXPECT_EQ(
        client_->post("/v2/trace/setting", R"({"trace_level":null,"trace_rate":null})").status,
        200U);
  }
  server_.server().tracer().close();
  EXPECT_THAT(test::read_text(folder_ / "trace.json"), HasSubstr(R"("model_name":"copy")"));
}

TEST_F(PerfServeTest, AServerThatDoesNotTraceSaysSo) {
  server_.add_copy("copy", "TYPE_INT32");
  start();
  const std::vector<std::string> words = {"-m",         "copy", "--shape", "IN:3", "--trace-level",
                                          "TIMESTAMPS", "-u"};

  for (const std::vector<std::string>& way :
       {std::vector<std::string>{http()}, std::vector<std::string>{grpc(), "-i", "grpc"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), way.begin(), way.end());
    EXPECT_EQ(run(all), 1);
    EXPECT_THAT(output_, HasSubstr("refused the trace settings: "));
    EXPECT_THAT(output_, HasSubstr("there is no file for traces"));
  }
}

// An ensemble of "a" (the latest version) and then "b" (version 1).
constexpr const char* kBoth = R"(
platform: "ensemble"
input { name: "X" data_type: TYPE_INT32 dims: -1 }
output { name: "Y" data_type: TYPE_INT32 dims: -1 }
ensemble_scheduling {
  step { model_name: "a" model_version: -1 input_map { key: "IN" value: "X" }
         output_map { key: "OUT" value: "middle" } }
  step { model_name: "b" model_version: 1 input_map { key: "IN" value: "middle" }
         output_map { key: "OUT" value: "Y" } } })";

TEST_F(PerfServeTest, AnEnsemblesPartsHaveFilesOfTheirOwn) {
  server_.add_copy("a", "TYPE_INT32");
  server_.add_copy("b", "TYPE_INT32");
  server_.folder().write("both/1/.keep", "");
  server_.folder().write("both/config.pbtxt", kBoth);
  start();

  for (const std::vector<std::string>& way :
       {std::vector<std::string>{"-u", http()},
        std::vector<std::string>{"-u", grpc(), "-i", "grpc"}}) {
    SCOPED_TRACE(testing::PrintToString(way));
    std::vector<std::string> words = {"-m", "both", "--shape", "X:3", "-f", folder_ / "perf.csv"};
    words.insert(words.end(), way.begin(), way.end());
    expect_measured(words);
    EXPECT_THAT(output_, HasSubstr("  Composing models: \n  a, version: \n"));
    EXPECT_THAT(output_, HasSubstr("\n  b, version: 1\n"));
    for (const char* name : {"a_v.perf.csv", "b_v1.perf.csv"}) {
      const std::string text = test::read_text(folder_ / name);
      EXPECT_THAT(text, testing::ContainsRegex("Server Compute Output,Client Recv\n1,[0-9.e+]+,0,"))
          << name;
      EXPECT_THAT(text, Not(HasSubstr("latency")));
    }
  }
}

// A model that takes sequences, and an ensemble of it alone.
constexpr const char* kSequence = R"(
backend: "fake" max_batch_size: 8
input { name: "INPUT" data_type: TYPE_INT32 dims: 1 }
output { name: "OUTPUT" data_type: TYPE_INT32 dims: 1 }
parameters { key: "compute" value { string_value: "sequence" } }
sequence_batching {
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } }
  control_input { name: "END" control { kind: CONTROL_SEQUENCE_END int32_false_true: [0, 1] } }
  control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
  oldest { max_candidate_sequences: 4 } })";
constexpr const char* kOfSequences = R"(
platform: "ensemble" max_batch_size: 8
input { name: "X" data_type: TYPE_INT32 dims: 1 }
output { name: "Y" data_type: TYPE_INT32 dims: 1 }
ensemble_scheduling {
  step { model_name: "seq" model_version: -1 input_map { key: "INPUT" value: "X" }
         output_map { key: "OUTPUT" value: "Y" } } })";

TEST_F(PerfServeTest, AnEnsembleOfASequenceModelIsMeasuredInSequences) {
  server_.folder().write("seq/config.pbtxt", kSequence);
  server_.folder().write("seq/1/model.bin", "");
  server_.folder().write("both/1/.keep", "");
  server_.folder().write("both/config.pbtxt", kOfSequences);
  start();

  expect_measured(
      {"-m", "both", "-u", http(), "--sequence-length", "4", "--sequence-length-variation", "0"});

  EXPECT_THAT(output_, HasSubstr("Sequence count: 5 ("));
}

TEST_F(PerfServeTest, ModelsThatAModelCallsAreShownAsItsParts) {
  server_.add_copy("a", "TYPE_INT32");
  server_.add_copy("caller", "TYPE_INT32");
  start();

  expect_measured({"-m", "caller", "-u", http(), "--shape", "IN:3", "-f", folder_ / "perf.csv",
                   "--bls-composing-models", "a:1"});
  EXPECT_THAT(output_,
              HasSubstr("  Composing models: \n  a, version: 1\n      Request count: 0\n"));
  EXPECT_THAT(test::read_text(folder_ / "a_v1.perf.csv"),
              testing::EndsWith("\n1,0,0,0,0,0,0,0,0\n"));

  EXPECT_EQ(run({"-m", "caller", "-u", http(), "--bls-composing-models", "nobody"}), 6);
  EXPECT_THAT(output_, HasSubstr("nobody"));
}

TEST_F(PerfServeTest, TheProfileExportHasEveryRequestOfEveryLevel) {
  server_.add_copy("copy", "TYPE_INT32");
  start();

  expect_measured({"-m", "copy", "-u", http(), "--shape", "IN:3", "--concurrency-range", "1:2",
                   "--profile-export-file", folder_ / "profile.json"});

  const auto profile = nlohmann::json::parse(test::read_text(folder_ / "profile.json"));
  ASSERT_EQ(profile["experiments"].size(), 2U);
  EXPECT_TRUE(profile["version"].is_string());
  for (std::size_t level = 0; level < 2; ++level) {
    const nlohmann::json& experiment = profile["experiments"][level];
    EXPECT_EQ(experiment["experiment"],
              (nlohmann::json{{"mode", "concurrency"}, {"value", level + 1}}));
    EXPECT_EQ(experiment["requests"].size(), 20U);
    ASSERT_EQ(experiment["window_boundaries"].size(), 2U);
    for (const nlohmann::json& request : experiment["requests"]) {
      ASSERT_EQ(request["response_timestamps"].size(), 1U);
      EXPECT_LE(request["timestamp"], request["response_timestamps"][0]);
      EXPECT_LE(experiment["window_boundaries"][0], request["response_timestamps"][0]);
      EXPECT_GE(experiment["window_boundaries"][1], request["response_timestamps"][0]);
    }
  }
}

}  // namespace
}  // namespace septet
