// perf_analyzer's console lines.
//
// Lines that perf_analyzer does not have appear only where it would have lost the row: failed
// requests, an unstable level, an interrupted one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure/level_result.h"
#include "measure/perf_options.h"

namespace septet::measure {

// "*** Measurement Settings ***" and its lines, a blank line at the end.
std::string perf_settings_text(const PerfPlan& plan);
// One level's block, a blank line at the end.
std::string perf_level_text(const PerfPlan& plan, const LevelResult& result);
// What --verbose adds after every window: "  Pass [1] throughput: ...".
std::string perf_window_text(const PerfPlan& plan, std::size_t number, const WindowResult& window);
// The last block, one line for each level in the order in which they ran.
std::string perf_summary_text(const PerfPlan& plan, const std::vector<LevelResult>& results);

}  // namespace septet::measure
