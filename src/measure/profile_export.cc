#include "measure/profile_export.h"

#include "inference/json_writer.h"

namespace septet::measure {

std::string profile_level(const Level& level, const LevelTimes& times,
                          std::int64_t unix_time_of_zero_ns) {
  const auto stamp = [&](Instant instant) {
    return static_cast<std::uint64_t>(unix_time_of_zero_ns + instant.time_since_epoch().count());
  };
  inference::JsonWriter json;
  json.begin_object().key("experiment").begin_object();
  if (level.mode == LoadMode::kConcurrency) {
    json.key("mode").value("concurrency").key("value");
    json.value(static_cast<std::uint64_t>(level.value));
  } else {
    json.key("mode").value("request_rate").key("value").value(level.value);
  }
  json.end_object().key("requests").begin_array();
  for (const RequestTimes& request : times.requests) {
    json.begin_object().key("timestamp").value(stamp(request.sent));
    if (request.sequence_id != 0) {
      json.key("sequence_id").value(request.sequence_id);
    }
    json.key("response_timestamps").begin_array().value(stamp(request.ended)).end_array();
    json.end_object();
  }
  json.end_array().key("window_boundaries").begin_array();
  for (const Instant boundary : times.boundaries) {
    json.value(stamp(boundary));
  }
  return json.end_array().end_object().take();
}

std::string profile_end(std::string_view version) {
  inference::JsonWriter json;
  return "],\"version\":" + json.value(version).take() + "}";
}

}  // namespace septet::measure
