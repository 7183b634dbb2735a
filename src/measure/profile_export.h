// perf_analyzer's profile export: when each request left and was answered, as JSON.
//
// Pure. The document is written level by level, so that no more than one level is held:
//
//   {"experiments":[ LEVEL, LEVEL, ... ],"version":"..."}
//   LEVEL = {"experiment":{"mode":"concurrency","value":4},
//            "requests":[{"timestamp":NS,"sequence_id":7,"response_timestamps":[NS]}, ...],
//            "window_boundaries":[NS, ...]}
//
// NS is nanoseconds since 1970.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "measure/measurement_rules.h"

namespace septet::measure {

// One good answer.
struct RequestTimes {
  Instant sent{};
  Instant ended{};
  std::uint64_t sequence_id = 0;  // 0 = none
};

// Of one level: the good answers of its windows, and where the windows begin and end.
struct LevelTimes {
  std::vector<RequestTimes> requests;
  std::vector<Instant> boundaries;
};

inline constexpr std::string_view kProfileBegin = R"({"experiments":[)";
std::string profile_level(const Level& level, const LevelTimes& times,
                          std::int64_t unix_time_of_zero_ns);  // of Instant{}
std::string profile_end(std::string_view version);

}  // namespace septet::measure
