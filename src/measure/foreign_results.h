// Results of any program as rows: results.csv of septet, the CSV of perf_analyzer and of septet
// perf, the printout of wrk.
//
// A run of another program is one line of a chart, named after its file; replicas and technique are
// unknown (replicas 0). What a program does not report is NaN, never 0. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "measure/results.h"

namespace septet::measure {

enum class ResultFormat { kSeptet, kPerfAnalyzer, kWrk, kUnknown };

// By the first line.
ResultFormat detect_format(std::string_view text);

// Every row of the file. perf_analyzer: a trailing comma is fine, rows come back in order of level.
// wrk: one or more printouts, one after the other; without --latency only the throughput is known.
// kFailed names the source, the line and what is wrong.
Result<std::vector<ResultRow>> parse_any_results(std::string_view text, const std::string& source,
                                                 const std::string& run);

}  // namespace septet::measure
