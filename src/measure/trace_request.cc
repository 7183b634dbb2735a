#include "measure/trace_request.h"

#include <fmt/format.h>

#include "base/text.h"
#include "inference/json_writer.h"

namespace septet::measure {

namespace {

Result<Ok> check_number(std::string_view option, const std::optional<std::string>& word,
                        std::int64_t least) {
  const std::optional<std::int64_t> number = word ? parse_int(*word) : least;
  if (number && *number >= least) {
    return Ok{};
  }
  return make_error(ErrorKind::kUsage,
                    fmt::format("{} '{}' is not a whole number from {} on", option, *word, least));
}

}  // namespace

std::vector<std::pair<std::string, std::vector<std::string>>> TraceRequest::settings() const {
  std::vector<std::pair<std::string, std::vector<std::string>>> result;
  const auto add = [&](const char* name, const std::optional<std::string>& value) {
    if (value) {
      result.push_back({name, {*value}});
    }
  };
  add("trace_file", file);
  if (!levels.empty()) {
    result.emplace_back("trace_level", levels);
  }
  add("trace_rate", rate);
  add("trace_count", count);
  add("log_frequency", log_frequency);
  return result;
}

Result<Ok> check_trace(const TraceRequest& request) {
  for (const std::string& level : request.levels) {
    if (level != "OFF" && level != "TIMESTAMPS" && level != "TENSORS") {
      return make_error(ErrorKind::kUsage, fmt::format("--trace-level '{}' is not known", level),
                        "use OFF, TIMESTAMPS or TENSORS; it may be repeated");
    }
  }
  SEPTET_TRY(check_number("--trace-rate", request.rate, 1));
  SEPTET_TRY(check_number("--trace-count", request.count, -1));
  return check_number("--log-frequency", request.log_frequency, 0);
}

std::string trace_setting_json(const TraceRequest& request) {
  inference::JsonWriter json;
  json.begin_object();
  for (const auto& [name, values] : request.settings()) {
    json.key(name);
    if (name != "trace_level") {
      json.value(values.front());
      continue;
    }
    json.begin_array();
    for (const std::string& value : values) {
      json.value(value);
    }
    json.end_array();
  }
  return json.end_object().take();
}

}  // namespace septet::measure
