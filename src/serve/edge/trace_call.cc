// The trace settings as clients read and change them, over HTTP and gRPC alike.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "inference/json_writer.h"
#include "serve/edge/server_settings.h"

namespace septet::serve {

using inference::invalid_argument;
using nlohmann::json;

namespace {

constexpr std::int64_t kMostTraces = INT64_MAX;

Outcome<bool> level_of(const json& value) {
  std::vector<std::string> levels;
  for (const json& level : value.is_array() ? value : json::array({value})) {
    if (!level.is_string()) {
      return invalid_argument("'trace_level' must hold strings");
    }
    levels.push_back(level.get<std::string>());
  }
  for (const std::string& level : levels) {
    if (level != "OFF" && level != "TIMESTAMPS") {
      return inference::unsupported(fmt::format(
          "'trace_level' {} is not offered by this server; OFF and TIMESTAMPS are", level));
    }
  }
  if (levels.empty() || (levels.size() > 1 && levels.front() != levels.back())) {
    return invalid_argument("'trace_level' must be OFF or TIMESTAMPS");
  }
  return levels.front() == "TIMESTAMPS";
}

// A number as Triton's clients send it: a string, one in an array, or a number.
Outcome<std::int64_t> number_of(const std::string& name, const json& value, std::int64_t least,
                                std::int64_t most) {
  const json& one = value.is_array() && value.size() == 1 ? value[0] : value;
  const std::string text = one.is_string() ? one.get<std::string>() : one.dump();
  const auto number = parse_int(text);
  if (!number || *number < least || *number > most) {
    return invalid_argument(fmt::format("'{}' must be a whole number from {} to {}, got '{}'", name,
                                        least, most, text));
  }
  return *number;
}

template <typename T>
Outcome<TraceChange::Field<T>> field_of(const std::string& name, const json& value,
                                        std::int64_t least, std::int64_t most) {
  if (value.is_null()) {
    return TraceChange::Field<T>(std::optional<T>());
  }
  const auto number = number_of(name, value, least, most);
  SEPTET_TRY(number);
  return TraceChange::Field<T>(static_cast<T>(*number));
}

Outcome<Ok> add_change(const std::string& name, const json& value, TraceChange& change) {
  if (name == "trace_level") {
    change.timestamps.emplace();
    if (!value.is_null()) {
      const auto level = level_of(value);
      SEPTET_TRY(level);
      change.timestamps = *level;
    }
  } else if (name == "trace_rate") {
    auto field = field_of<std::uint32_t>(name, value, 1, UINT32_MAX);
    SEPTET_TRY(field);
    change.rate = *field;
  } else if (name == "trace_count") {
    auto field = field_of<std::int64_t>(name, value, -1, kMostTraces);
    SEPTET_TRY(field);
    change.count = *field;
  } else if (name == "log_frequency") {
    auto field = field_of<std::uint32_t>(name, value, 0, UINT32_MAX);
    SEPTET_TRY(field);
    change.log_frequency = *field;
  } else if (name == "trace_file") {
    return inference::unsupported(
        "the trace file cannot be chosen through the protocol; start the server with "
        "--trace-config=triton,file=PATH");
  } else {
    return invalid_argument(fmt::format("Unknown key '{}' found in trace setting", name));
  }
  return Ok{};
}

}  // namespace

Outcome<std::string> trace_call(InferenceServer& server, const V2Path& path,
                                std::string_view body) {
  if (!path.model.empty()) {
    SEPTET_TRY(server.store().find(path.model, ""));
  }
  Tracer& tracer = server.tracer();
  if (!trim(body).empty()) {
    const json request = json::parse(body, nullptr, false);
    if (!request.is_object()) {
      return invalid_argument("the trace setting request must be a JSON object");
    }
    TraceChange change;
    for (const auto& [name, value] : request.items()) {
      SEPTET_TRY(add_change(name, value, change));
    }
    if (change.timestamps && change.timestamps->value_or(false) && tracer.file().empty()) {
      return inference::unsupported(
          "there is no file for traces; start the server with --trace-config=triton,file=PATH");
    }
    if (!request.empty()) {
      tracer.change(path.model, change);
    }
  }
  const TraceSetting setting = tracer.setting_of(path.model);
  inference::JsonWriter answer;
  answer.begin_object().key("trace_level").begin_array();
  answer.value(setting.timestamps ? "TIMESTAMPS" : "OFF").end_array();
  answer.key("trace_rate").value(fmt::to_string(setting.rate));
  answer.key("trace_count").value(fmt::to_string(setting.count));
  answer.key("log_frequency").value(fmt::to_string(setting.log_frequency));
  answer.key("trace_file").value(tracer.file()).end_object();
  return answer.take();
}

}  // namespace septet::serve
