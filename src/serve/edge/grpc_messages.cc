#include "serve/edge/grpc_messages.h"

#include <nlohmann/json.hpp>

#include "serve/request_check.h"

namespace septet::serve {

namespace proto = ::inference;
using nlohmann::json;

namespace {

template <typename Tensor>
void describe(const ModelConfig& config, const inference::TensorConfig& from, Tensor& to) {
  to.set_name(from.name);
  to.set_datatype(std::string(wire_name(from.datatype)));
  for (const std::int64_t dimension : client_shape(config, from)) {
    to.add_shape(dimension);
  }
}

void copy_duration(const DurationCount& from, proto::StatisticDuration* to) {
  to->set_count(from.count);
  to->set_ns(from.ns);
}

}  // namespace

void fill_statistics(const ModelStatistics& from, proto::ModelStatistics& to) {
  to.set_last_inference(from.last_inference_ms);
  to.set_inference_count(from.inference_count);
  to.set_execution_count(from.execution_count);
  proto::InferStatistics& stats = *to.mutable_inference_stats();
  copy_duration(from.success, stats.mutable_success());
  copy_duration(from.fail, stats.mutable_fail());
  copy_duration(from.queue, stats.mutable_queue());
  copy_duration(from.compute_input, stats.mutable_compute_input());
  copy_duration(from.compute_infer, stats.mutable_compute_infer());
  copy_duration(from.compute_output, stats.mutable_compute_output());
  copy_duration(from.cache_hit, stats.mutable_cache_hit());
  copy_duration(from.cache_miss, stats.mutable_cache_miss());
  for (const auto& [size, batch] : from.batches) {
    proto::InferBatchStatistics& added = *to.add_batch_stats();
    added.set_batch_size(size);
    copy_duration(batch.compute_input, added.mutable_compute_input());
    copy_duration(batch.compute_infer, added.mutable_compute_infer());
    copy_duration(batch.compute_output, added.mutable_compute_output());
  }
}

void fill_metadata(const ModelStore& store, const ServedModel& model,
                   proto::ModelMetadataResponse& to) {
  const ModelConfig& config = model.config();
  to.set_name(config.name);
  to.set_platform(config.platform.empty() ? config.backend : config.platform);
  for (const std::string& version : store.ready_versions(config.name)) {
    to.add_versions(version);
  }
  for (const inference::TensorConfig& input : config.inputs) {
    describe(config, input, *to.add_inputs());
  }
  for (const inference::TensorConfig& output : config.outputs) {
    describe(config, output, *to.add_outputs());
  }
}

std::string settings_json(
    const google::protobuf::Map<std::string, proto::TraceSettingRequest::SettingValue>& from) {
  json object = json::object();
  for (const auto& [name, value] : from) {
    if (value.value().empty()) {
      object[name] = nullptr;
    } else if (name == "trace_level") {
      object[name] = std::vector<std::string>(value.value().begin(), value.value().end());
    } else {
      object[name] = value.value(0);
    }
  }
  return object.empty() ? std::string() : object.dump();
}

std::string settings_json(
    const google::protobuf::Map<std::string, proto::LogSettingsRequest::SettingValue>& from) {
  using Value = proto::LogSettingsRequest::SettingValue;
  json object = json::object();
  for (const auto& [name, value] : from) {
    if (value.parameter_choice_case() == Value::kBoolParam) {
      object[name] = value.bool_param();
    } else if (value.parameter_choice_case() == Value::kUint32Param) {
      object[name] = value.uint32_param();
    } else {
      object[name] = value.string_param();
    }
  }
  return object.empty() ? std::string() : object.dump();
}

void fill_settings(const std::string& text, proto::TraceSettingResponse& to) {
  const json object = json::parse(text);
  for (const auto& [name, value] : object.items()) {
    (*to.mutable_settings())[name].add_value(value.is_array() ? value[0].get<std::string>()
                                                              : value.get<std::string>());
  }
}

void fill_settings(const std::string& text, proto::LogSettingsResponse& to) {
  const json object = json::parse(text);
  for (const auto& [name, value] : object.items()) {
    auto& setting = (*to.mutable_settings())[name];
    if (value.is_boolean()) {
      setting.set_bool_param(value.get<bool>());
    } else if (value.is_number()) {
      setting.set_uint32_param(value.get<std::uint32_t>());
    } else {
      setting.set_string_param(value.get<std::string>());
    }
  }
}

}  // namespace septet::serve
