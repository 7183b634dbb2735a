// Every extension that the server's metadata names, over HTTP and over gRPC.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "inference/edge/proto_json.h"
#include "support/both_interfaces.h"

namespace septet::serve {
namespace {

using inference::InferRequest;
using inference::JsonWriter;
using nlohmann::json;
using test_support::BothInterfaces;
using test_support::HttpReply;
using test_support::read_reply;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace proto = ::inference;

class EveryExtension : public BothInterfaces {
 protected:
  static InferRequest ints(const std::string& model, const std::string& input,
                           const std::vector<std::int32_t>& values, const Shape& shape) {
    InferRequest request{.model_name = model, .id = "x"};
    request.binary_outputs = true;
    std::string bytes(reinterpret_cast<const char*>(values.data()), 4 * values.size());
    request.inputs.push_back({.name = input,
                              .datatype = Datatype::kInt32,
                              .shape = shape,
                              .data = inference::own_text(std::move(bytes))});
    return request;
  }

  // The first output over HTTP, after a look that gRPC's is the same.
  std::string output_of_both(const InferRequest& request) {
    const auto over_http = read_reply(infer_over_http(request));
    proto::ModelInferResponse response;
    const grpc::Status status = infer_over_grpc(request, response);
    if (!over_http.ok() || !status.ok()) {
      ADD_FAILURE() << (over_http.ok() ? status.error_message() : over_http.error().message);
      return {};
    }
    EXPECT_EQ(over_http->outputs[0].data.text(), response.raw_output_contents(0));
    EXPECT_EQ(wire_name(over_http->outputs[0].datatype), response.outputs(0).datatype());
    EXPECT_EQ(over_http->outputs[0].shape,
              Shape(response.outputs(0).shape().begin(), response.outputs(0).shape().end()));
    return std::string(over_http->outputs[0].data.text());
  }

  json get(const std::string& target) { return json::parse(client_->get(target).body); }
};

TEST_F(EveryExtension, IsNamedByBoth) {
  start();
  proto::ServerMetadataResponse response;

  ASSERT_TRUE(call(&Stub::ServerMetadata, {}, response).ok());

  EXPECT_THAT(response.extensions(),
              ElementsAre("classification", "sequence", "model_repository",
                          "model_repository(unload_dependents)", "schedule_policy",
                          "model_configuration", "system_shared_memory", "binary_tensor_data",
                          "parameters", "statistics", "trace", "logging"));
  EXPECT_EQ(get("/v2")["extensions"], json(std::vector<std::string>(response.extensions().begin(),
                                                                    response.extensions().end())));
}

TEST_F(EveryExtension, ClassificationGivesTheSameTexts) {
  server_.add_copy("copy", "TYPE_INT32", "max_batch_size: 4");
  start();
  InferRequest request = ints("copy", "IN", {3, 9, 7, 1, 2, 8}, {2, 3});
  request.outputs.push_back({.name = "OUT", .binary = true, .classification = 2});

  const std::string bytes = output_of_both(request);

  const auto elements = inference::split_bytes_elements(std::as_bytes(std::span(bytes)));
  EXPECT_THAT(elements.value(), ElementsAre("9:1", "7:2", "8:2", "2:1"));
}

TEST_F(EveryExtension, SequencesGoOnFromOneInterfaceToTheOther) {
  server_.folder().write("seq/1/model.bin", "");
  server_.folder().write("seq/config.pbtxt", R"(backend: "fake" max_batch_size: 8
    input { name: "INPUT" data_type: TYPE_INT32 dims: 1 }
    output { name: "OUTPUT" data_type: TYPE_INT32 dims: 1 }
    parameters { key: "compute" value { string_value: "sequence" } }
    sequence_batching { max_sequence_idle_microseconds: 60000000
      control_input { name: "START"
                      control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } } })");
  start();
  for (const inference::SequenceId& id :
       {inference::SequenceId(std::uint64_t{7}), inference::SequenceId(std::string("seven"))}) {
    InferRequest request = ints("seq", "INPUT", {10}, {1, 1});
    request.sequence_id = id;
    request.sequence_start = true;
    const auto first = read_reply(infer_over_http(request));
    request.sequence_start = false;
    request.sequence_end = true;
    proto::ModelInferResponse second;

    ASSERT_TRUE(first.ok()) << first.error().message;
    ASSERT_TRUE(infer_over_grpc(request, second).ok());
    EXPECT_EQ(first->outputs[0].data.text()[0], 11);
    EXPECT_EQ(second.raw_output_contents(0)[0], 10);
    EXPECT_EQ(infer_over_http(request).status, 400U);  // it has ended
  }
}

TEST_F(EveryExtension, TheRepositoryIsControlledOverGrpcAsOverHttp) {
  server_.add_simple();
  start({.control = InferenceServerOptions::Control::kExplicit});
  proto::RepositoryModelUnloadRequest unload;
  unload.set_model_name("simple");
  (*unload.mutable_parameters())["unload_dependents"].set_bool_param(true);
  proto::RepositoryModelUnloadResponse unloaded;
  proto::RepositoryModelLoadRequest load;
  load.set_model_name("simple");
  proto::RepositoryModelLoadResponse loaded;
  proto::RepositoryIndexResponse index;
  proto::ModelReadyRequest which;
  which.set_name("simple");
  proto::ModelReadyResponse ready;

  EXPECT_TRUE(call(&Stub::RepositoryModelUnload, unload, unloaded).ok());
  EXPECT_EQ(client_->get("/v2/models/simple/ready").status, 400U);
  EXPECT_TRUE(call(&Stub::ModelReady, which, ready).ok());
  EXPECT_FALSE(ready.ready());
  EXPECT_TRUE(call(&Stub::RepositoryIndex, {}, index).ok());
  EXPECT_EQ(index.models(0).state(), "UNAVAILABLE");
  EXPECT_TRUE(call(&Stub::RepositoryModelLoad, load, loaded).ok());
  EXPECT_EQ(client_->get("/v2/models/simple/ready").status, 200U);
}

TEST_F(EveryExtension, ALoadMayBringItsOwnFilesOverBoth) {
  server_.add_copy("copy", "TYPE_INT32");
  start({.control = InferenceServerOptions::Control::kExplicit});
  json config = get("/v2/models/copy/config");
  config["output"][0]["label_filename"] = "names";
  config["name"] = "brought";
  proto::RepositoryModelLoadRequest load;
  load.set_model_name("brought");
  (*load.mutable_parameters())["config"].set_string_param(config.dump());
  (*load.mutable_parameters())["file:7/model.bin"].set_bytes_param("anything");
  (*load.mutable_parameters())["file:names"].set_bytes_param("zero\none\n");
  proto::RepositoryModelLoadResponse loaded;
  InferRequest request = ints("brought", "IN", {3, 9}, {2});
  request.outputs.push_back({.name = "OUT", .binary = true, .classification = 1});

  const grpc::Status status = call(&Stub::RepositoryModelLoad, load, loaded);
  const std::string over_grpc = status.ok() ? output_of_both(request) : status.error_message();
  const json brought = {{"parameters",
                         {{"config", config.dump()},
                          {"file:8/model.bin", "YW55dGhpbmc="},
                          {"file:names", "bm9uZQpvdGhlcgo="}}}};
  const HttpReply reply = client_->post("/v2/repository/models/brought/load", brought.dump());

  EXPECT_THAT(over_grpc, HasSubstr("9:1:one"));
  EXPECT_EQ(reply.status, 200U) << reply.body;
  EXPECT_THAT(output_of_both(request), HasSubstr("9:1:other"));
  EXPECT_EQ(get("/v2/models/brought")["versions"], json::array({"8"}));
  EXPECT_FALSE(std::filesystem::exists(server_.folder().path() + "/brought"));
}

TEST_F(EveryExtension, AFileOfALoadStaysInsideItsFolder) {
  server_.add_copy("copy", "TYPE_INT32");
  start({.control = InferenceServerOptions::Control::kExplicit});
  const std::string config = get("/v2/models/copy/config").dump();
  const auto load = [&](const json& parameters) {
    return client_->post("/v2/repository/models/copy/load", json{{"parameters", parameters}}.dump())
        .body;
  };

  EXPECT_THAT(load({{"config", config}, {"file:../../x", "eA=="}}), HasSubstr("leaves the folder"));
  EXPECT_THAT(load({{"config", config}, {"file:/x", "eA=="}}), HasSubstr("leaves the folder"));
  EXPECT_THAT(load({{"config", config}, {"file:x", "eA=="}}), HasSubstr("lies in a version"));
  EXPECT_THAT(load({{"config", config}, {"file:1/x", "!"}}), HasSubstr("base64"));
  EXPECT_THAT(load({{"file:1/x", "eA=="}}), HasSubstr("need the parameter 'config'"));
  EXPECT_EQ(output_of_both(ints("copy", "IN", {1}, {1}))[0], 1);
}

TEST_F(EveryExtension, PriorityAndTimeoutAreTakenByBoth) {
  server_.add_copy("copy", "TYPE_INT32",
                   "max_batch_size: 4 dynamic_batching { priority_levels: 2 "
                   "default_priority_level: 2 default_queue_policy "
                   "{ allow_timeout_override: true default_timeout_microseconds: 60000000 } }");
  start();
  InferRequest request = ints("copy", "IN", {5}, {1, 1});
  request.priority = 1;
  request.timeout_us = 50'000'000;

  EXPECT_EQ(output_of_both(request)[0], 5);
}

TEST_F(EveryExtension, TheConfigurationIsTheSameByBoth) {
  server_.add_simple("dynamic_batching { preferred_batch_size: [2, 4] }");
  start();
  proto::ModelConfigRequest request;
  request.set_name("simple");
  proto::ModelConfigResponse response;

  ASSERT_TRUE(call(&Stub::ModelConfig, request, response).ok());

  JsonWriter text;
  inference::write_proto_json(text, response.config());
  EXPECT_EQ(get("/v2/models/simple/config"), json::parse(text.text()));
}

TEST_F(EveryExtension, SharedMemoryIsOnePlaceForBoth) {
  const std::string key = fmt::format("/septet_extensions_{}", ::getpid());
  const os::UniqueFd fd(::shm_open(key.c_str(), O_CREAT | O_RDWR, 0600));
  ASSERT_EQ(::ftruncate(fd.get(), 64), 0);
  ASSERT_EQ(::pwrite(fd.get(), "abcdefgh", 8, 16), 8);
  server_.add_copy("copy", "TYPE_INT32");
  start();
  proto::SystemSharedMemoryRegisterRequest region;
  region.set_name("r");
  region.set_key(key);
  region.set_offset(16);
  region.set_byte_size(48);
  proto::SystemSharedMemoryRegisterResponse registered;
  proto::SystemSharedMemoryStatusResponse regions;
  proto::SystemSharedMemoryUnregisterResponse unregistered;
  proto::CudaSharedMemoryUnregisterResponse no_cuda;
  InferRequest request{.model_name = "copy"};
  request.inputs.push_back({.name = "IN", .datatype = Datatype::kInt32, .shape = {2}});
  request.inputs[0].shared = inference::SharedMemoryRange{"r", 0, 8};
  request.outputs.push_back({.name = "OUT"});
  request.outputs[0].shared = inference::SharedMemoryRange{"r", 8, 8};
  proto::ModelInferResponse response;

  EXPECT_TRUE(call(&Stub::SystemSharedMemoryRegister, region, registered).ok());
  EXPECT_EQ(call(&Stub::SystemSharedMemoryRegister, region, registered).error_code(),
            grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(get("/v2/systemsharedmemory/status")[0]["byte_size"], 48);
  EXPECT_TRUE(infer_over_grpc(request, response).ok());
  EXPECT_EQ(response.raw_output_contents(0), "");
  std::string written(8, '\0');
  EXPECT_EQ(::pread(fd.get(), written.data(), 8, 24), 8);
  EXPECT_EQ(written, "abcdefgh");
  EXPECT_EQ(infer_over_http(request).status, 200U);
  EXPECT_TRUE(call(&Stub::SystemSharedMemoryStatus, {}, regions).ok());
  EXPECT_EQ(regions.regions().at("r").offset(), 16U);
  EXPECT_TRUE(call(&Stub::SystemSharedMemoryUnregister, {}, unregistered).ok());
  EXPECT_TRUE(call(&Stub::CudaSharedMemoryUnregister, {}, no_cuda).ok());
  EXPECT_EQ(infer_over_http(request).status, 404U);
  ::shm_unlink(key.c_str());
}

TEST_F(EveryExtension, ParametersReachTheEngine) {
  server_.folder().write("told/1/model.bin", "");
  server_.folder().write("told/config.pbtxt", R"(backend: "fake"
    input { name: "INPUT" data_type: TYPE_INT32 dims: 1 }
    output { name: "OUTPUT" data_type: TYPE_STRING dims: -1 }
    parameters { key: "compute" value { string_value: "told" } })");
  start();
  InferRequest request = ints("told", "INPUT", {1}, {1});
  request.parameters = {{"flag", true}, {"number", std::int64_t{-3}}, {"text", std::string("t")}};

  const std::string bytes = output_of_both(request);

  const auto elements = inference::split_bytes_elements(std::as_bytes(std::span(bytes)));
  EXPECT_THAT(elements.value(), ElementsAre("flag=true", "number=-3", "text=t"));
}

TEST_F(EveryExtension, StatisticsAreTheSameByBoth) {
  server_.add_copy("copy", "TYPE_INT32");
  start();
  output_of_both(ints("copy", "IN", {1, 2}, {2}));
  proto::ModelStatisticsRequest request;
  request.set_name("copy");
  proto::ModelStatisticsResponse response;

  ASSERT_TRUE(call(&Stub::ModelStatistics, request, response).ok());

  const json over_http = get("/v2/models/copy/stats")["model_stats"][0];
  const proto::ModelStatistics& over_grpc = response.model_stats(0);
  EXPECT_EQ(over_http["inference_count"], 2);
  EXPECT_EQ(over_http["inference_count"], over_grpc.inference_count());
  EXPECT_EQ(over_http["execution_count"], over_grpc.execution_count());
  EXPECT_EQ(over_http["inference_stats"]["success"]["ns"],
            over_grpc.inference_stats().success().ns());
  EXPECT_EQ(over_http["batch_stats"][0]["compute_infer"]["ns"],
            over_grpc.batch_stats(0).compute_infer().ns());
}

TEST_F(EveryExtension, SettingsChangedOverGrpcAreReadOverHttp) {
  start();
  proto::LogSettingsRequest log;
  (*log.mutable_settings())["log_info"].set_bool_param(false);
  (*log.mutable_settings())["log_verbose_level"].set_uint32_param(2);
  (*log.mutable_settings())["log_format"].set_string_param("ISO8601");
  proto::LogSettingsResponse logged;
  proto::TraceSettingResponse trace;

  ASSERT_TRUE(call(&Stub::LogSettings, log, logged).ok());
  ASSERT_TRUE(call(&Stub::TraceSetting, {}, trace).ok());

  const json over_http = get("/v2/logging");
  EXPECT_EQ(over_http["log_info"], false);
  EXPECT_EQ(over_http["log_verbose_level"], 2);
  EXPECT_EQ(over_http["log_format"], "ISO8601");
  EXPECT_FALSE(logged.settings().at("log_info").bool_param());
  EXPECT_THAT(trace.settings().at("trace_level").value(), ElementsAre("OFF"));
}

}  // namespace
}  // namespace septet::serve
