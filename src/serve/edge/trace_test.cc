// Traces of requests, from the settings of both interfaces to Triton's file.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/both_interfaces.h"

namespace septet::serve {
namespace {

using nlohmann::json;
using test_support::BothInterfaces;
using test_support::HttpReply;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace proto = ::inference;

class TraceTest : public BothInterfaces {
 protected:
  std::string path() { return server_.folder().path() + "/trace.json"; }
  void start_traced(TraceSetting setting) {
    server_.add_copy("copy", "TYPE_UINT8");
    start({.trace = {.setting = setting, .file = path()}});
  }
  HttpReply infer(const std::string& id = "", const std::string& model = "copy") {
    json body = {
        {"inputs", {{{"name", "IN"}, {"datatype", "UINT8"}, {"shape", {1}}, {"data", {7}}}}}};
    if (!id.empty()) {
      body["id"] = id;
    }
    return client_->post("/v2/models/" + model + "/infer", body.dump());
  }
  HttpReply set(const json& settings, const std::string& model = "") {
    return client_->post((model.empty() ? "/v2" : "/v2/models/" + model) + "/trace/setting",
                         settings.dump());
  }
  json settings(const std::string& model = "") {
    return json::parse(
        client_->get((model.empty() ? "/v2" : "/v2/models/" + model) + "/trace/setting").body);
  }
  // The file's elements, once it has so many: the last request's trace ends after its answer.
  static json read_elements(const std::string& file, std::size_t count) {
    for (;;) {
      std::ifstream input(file);
      const json elements = json::parse(input, nullptr, false);
      if (elements.is_array() && elements.size() >= count) {
        return elements;
      }
      std::this_thread::yield();
    }
  }
  static std::vector<std::string> names_of(const json& times) {
    std::vector<std::string> names;
    for (const json& time : times["timestamps"]) {
      names.push_back(time["name"]);
    }
    return names;
  }
};

TEST_F(TraceTest, ARequestIsFollowedFromItsFirstByteToItsAnswersLast) {
  start_traced({.timestamps = true, .rate = 1, .count = 1});

  ASSERT_EQ(infer("a").status, 200U);

  const json elements = read_elements(path(), 2);
  ASSERT_EQ(elements.size(), 2U);
  EXPECT_EQ(elements[0],
            (json{{"id", 1}, {"model_name", "copy"}, {"model_version", 1}, {"request_id", "a"}}));
  EXPECT_EQ(elements[1]["id"], 1);
  EXPECT_THAT(
      names_of(elements[1]),
      ElementsAre("HTTP_RECV_START", "HTTP_RECV_END", "REQUEST_START", "QUEUE_START",
                  "COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END",
                  "INFER_RESPONSE_COMPLETE", "REQUEST_END", "HTTP_SEND_START", "HTTP_SEND_END"));
  std::int64_t before = 1;
  for (const json& time : elements[1]["timestamps"]) {
    EXPECT_GE(time["ns"].get<std::int64_t>(), before) << time;
    before = time["ns"];
  }
}

TEST_F(TraceTest, CallsOfGrpcAreFollowedToo) {
  start_traced({.timestamps = true, .rate = 1, .count = 2});
  inference::InferRequest request{.model_name = "copy", .id = "g"};
  request.inputs.push_back(
      {.name = "IN", .datatype = Datatype::kUint8, .shape = {1}, .data = inference::own_text("x")});
  proto::ModelInferResponse response;
  ASSERT_TRUE(infer_over_grpc(request, response).ok());
  grpc::ClientContext context;
  const auto stream = stub_->ModelStreamInfer(&context);
  proto::ModelInferRequest message;
  inference::to_message(request, message);
  stream->Write(message);
  stream->WritesDone();
  proto::ModelStreamInferResponse streamed;
  ASSERT_TRUE(stream->Read(&streamed));
  ASSERT_TRUE(stream->Finish().ok());

  for (const json& element : read_elements(path(), 4)) {
    if (element.contains("timestamps")) {
      const auto names = names_of(element);
      EXPECT_EQ(names.front(), "GRPC_WAITREAD_END");
      EXPECT_EQ(names[names.size() - 2], "GRPC_SEND_START");
      EXPECT_EQ(names.back(), "GRPC_SEND_END");
      EXPECT_EQ(names.size(), 11U);
    }
  }
}

TEST_F(TraceTest, SettingsAreChangedByBothInterfacesAndByModel) {
  start_traced({});
  proto::TraceSettingRequest change;
  change.set_model_name("copy");
  (*change.mutable_settings())["trace_rate"].add_value("1");
  (*change.mutable_settings())["trace_count"].add_value("1");
  proto::TraceSettingResponse changed;

  EXPECT_EQ(set({{"trace_level", {"TIMESTAMPS"}}, {"trace_rate", "5"}}).status, 200U);
  ASSERT_TRUE(call(&Stub::TraceSetting, change, changed).ok());

  EXPECT_THAT(changed.settings().at("trace_level").value(), ElementsAre("TIMESTAMPS"));
  EXPECT_EQ(settings(), (json{{"trace_level", {"TIMESTAMPS"}},
                              {"trace_rate", "5"},
                              {"trace_count", "-1"},
                              {"log_frequency", "0"},
                              {"trace_file", path()}}));
  EXPECT_EQ(settings("copy")["trace_rate"], "1");
  infer("counted");
  infer("not counted");
  EXPECT_EQ(read_elements(path(), 2).size(), 2U);
  EXPECT_EQ(settings("copy")["trace_count"], "0");
  EXPECT_EQ(set({{"trace_rate", nullptr}, {"trace_count", nullptr}}, "copy").status, 200U);
  EXPECT_EQ(settings("copy"), settings());
  EXPECT_EQ(set({{"trace_level", nullptr}, {"trace_rate", nullptr}}).status, 200U);
  EXPECT_EQ(settings()["trace_level"], json::array({"OFF"}));
  EXPECT_EQ(settings()["trace_rate"], "1000");
}

TEST_F(TraceTest, WhatIsWrongOrNotOfferedIsNamedAndChangesNothing) {
  start_traced({});
  const auto refusal = [&](const json& change, unsigned status) {
    const HttpReply reply = set(change);
    EXPECT_EQ(reply.status, status) << reply.body;
    return reply.body;
  };

  EXPECT_THAT(refusal({{"trace_level", {"TENSORS"}}}, 501), HasSubstr("TENSORS is not offered"));
  EXPECT_THAT(refusal({{"trace_file", "/tmp/x"}}, 501), HasSubstr("--trace-config"));
  EXPECT_THAT(refusal({{"trace_rate", "0"}}, 400), HasSubstr("'trace_rate'"));
  EXPECT_THAT(refusal({{"trace_rate", "1"}, {"trace_count", "x"}}, 400),
              HasSubstr("'trace_count'"));
  EXPECT_THAT(refusal({{"log_frequency", -1}}, 400), HasSubstr("'log_frequency'"));
  EXPECT_THAT(refusal({{"trace_level", json::array({})}}, 400), HasSubstr("'trace_level'"));
  EXPECT_THAT(refusal({{"trace_level", {"OFF", "TIMESTAMPS"}}}, 400), HasSubstr("OFF or"));
  EXPECT_THAT(refusal({{"nonsense", "1"}}, 400), HasSubstr("Unknown key 'nonsense'"));
  EXPECT_EQ(settings()["trace_rate"], "1000");
}

TEST_F(TraceTest, WithALogFrequencySoManyTracesMakeUpAFile) {
  start_traced({.timestamps = true, .rate = 1, .log_frequency = 2});
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(infer().status, 200U);
  }

  EXPECT_EQ(read_elements(path() + ".0", 4).size(), 4U);
  // A change of the settings writes what there is; the third trace may still be ending.
  while (!std::filesystem::exists(path() + ".1")) {
    EXPECT_EQ(set({{"trace_level", {"OFF"}}}).status, 200U);
  }
  EXPECT_EQ(read_elements(path() + ".1", 2).size(), 2U);
}

TEST_F(TraceTest, TheFileIsAWholeArrayAfterEveryWrite) {
  start_traced({.timestamps = true, .rate = 1, .count = 1});
  infer("first");
  EXPECT_EQ(read_elements(path(), 2).size(), 2U);

  set({{"trace_count", "1"}});
  infer("second");

  const json elements = read_elements(path(), 4);
  EXPECT_EQ(elements[2]["request_id"], "second");
  EXPECT_EQ(elements[3]["id"], 2);
}

TEST_F(TraceTest, TheStepsOfAnEnsembleAreTracesOfTheirOwn) {
  server_.folder().write("both/1/.keep", "");
  server_.folder().write("both/config.pbtxt", R"(
    platform: "ensemble"
    input { name: "IN" data_type: TYPE_UINT8 dims: -1 }
    output { name: "OUT" data_type: TYPE_UINT8 dims: -1 }
    ensemble_scheduling {
      step { model_name: "copy" input_map { key: "IN" value: "IN" }
             output_map { key: "OUT" value: "OUT" } } })");
  start_traced({.timestamps = true, .rate = 1, .count = 1});

  ASSERT_EQ(infer("e", "both").status, 200U);

  std::map<std::string, json> requests;
  for (const json& element : read_elements(path(), 4)) {
    if (element.contains("model_name")) {
      requests[element["model_name"]] = element;
    }
  }
  EXPECT_EQ(requests["copy"]["parent_id"], requests["both"]["id"]);
  EXPECT_FALSE(requests["both"].contains("parent_id"));
}

}  // namespace
}  // namespace septet::serve
