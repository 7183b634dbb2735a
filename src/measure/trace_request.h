// TraceRequest: what a server is told about the tracing of requests before a load.
//
// A value type. Only what was said is sent; the rest stays as the server has it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace septet::measure {

struct TraceRequest {
  std::optional<std::string> file;
  std::vector<std::string> levels;  // OFF, TIMESTAMPS, TENSORS
  std::optional<std::string> rate;
  std::optional<std::string> count;
  std::optional<std::string> log_frequency;

  bool empty() const { return !file && levels.empty() && !rate && !count && !log_frequency; }
  // The trace extension's names with their values.
  std::vector<std::pair<std::string, std::vector<std::string>>> settings() const;
};

// kUsage when a level is unknown or a number is none.
Result<Ok> check_trace(const TraceRequest& request);

// The body of POST /v2/trace/setting.
std::string trace_setting_json(const TraceRequest& request);

}  // namespace septet::measure
