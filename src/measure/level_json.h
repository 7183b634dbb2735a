// The open form of a level's result: one JSON object a line, with everything that was measured.
//
// Schema "septet.perf/1", described in docs/formats/perf_levels.md. Lines of several runs may be
// put together; histograms of the same level may be added bucket by bucket.
#pragma once

#include <string>

#include "measure/level_result.h"

namespace septet::measure {

// What the rows of a file have in common.
struct MeasurementContext {
  std::string model;
  std::string url;
  std::string protocol = "http";
  std::string version;            // of septet, with its commit
  std::int64_t unix_time_ns = 0;  // when the level was finished
  std::uint64_t seed = 1;
};

// One line with its line end.
std::string level_json(const LevelResult& result, const MeasurementContext& context);

}  // namespace septet::measure
