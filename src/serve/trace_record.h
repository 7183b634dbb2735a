// TraceRecord: what is known of one traced request, and its form in a trace file of Triton's.
//
// A value type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"

namespace septet::serve {

struct TraceRecord {
  std::uint64_t id = 0;
  std::uint64_t parent_id = 0;  // of an ensemble's step; 0 = none
  std::string model_name{};
  std::int64_t model_version = 0;
  std::string request_id{};
  std::vector<std::pair<std::string_view, Instant>> timestamps{};  // names of static storage
};

// Two elements of the file's array, without a bracket: the request and its timestamps.
std::string to_json(const TraceRecord& record);

}  // namespace septet::serve
