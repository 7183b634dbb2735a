#include "serve/trace_record.h"

#include "inference/json_writer.h"

namespace septet::serve {

std::string to_json(const TraceRecord& record) {
  inference::JsonWriter request;
  request.begin_object().key("id").value(record.id);
  request.key("model_name").value(record.model_name);
  request.key("model_version").value(record.model_version);
  if (!record.request_id.empty()) {
    request.key("request_id").value(record.request_id);
  }
  if (record.parent_id != 0) {
    request.key("parent_id").value(record.parent_id);
  }
  request.end_object();
  inference::JsonWriter times;
  times.begin_object().key("id").value(record.id).key("timestamps").begin_array();
  for (const auto& [name, instant] : record.timestamps) {
    times.begin_object().key("name").value(name);
    times.key("ns").value(static_cast<std::int64_t>(instant.time_since_epoch().count()));
    times.end_object();
  }
  times.end_array().end_object();
  return request.take() + "," + times.take();
}

}  // namespace septet::serve
