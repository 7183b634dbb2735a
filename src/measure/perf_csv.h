// perf_analyzer's CSV file, byte for byte: header, units, number formats.
//
// Rows come in the order of the levels, so a row can be appended as soon as its level is finished.
// Latencies are whole microseconds, truncated; throughput has six significant digits.
#pragma once

#include <optional>
#include <string>

#include "measure/level_result.h"
#include "measure/model_description.h"

namespace septet::measure {

// Which columns the file has. Fixed by the first line, so decided before the first level.
struct PerfCsvFormat {
  LoadMode mode = LoadMode::kConcurrency;
  std::optional<int> percentile;  // an extra pNN column unless 50, 90, 95 or 99
  bool server_columns = true;     // the server lists the statistics extension
  bool cache_columns = false;     // the model's response cache is on
  bool verbose = false;           // --verbose-csv
  bool gpu_columns = false;       // the server's metrics are collected; only with verbose
};

// One line with its line end.
std::string perf_csv_header(const PerfCsvFormat& format);
std::string perf_csv_row(const PerfCsvFormat& format, const LevelResult& result);

// The same of one part of an ensemble, as `has_cache` says with its cache: the part's own counters,
// its throughput by the ensemble's, no percentiles, nothing sent or received by the client. `index`
// is the part's place in result.parts.
std::string perf_part_csv_header(const PerfCsvFormat& format, bool has_cache);
std::string perf_part_csv_row(const LevelResult& result, std::size_t index, bool has_cache);
// "MODEL_vVERSION.FILE" in FILE's folder.
std::string perf_part_csv_file(const std::string& csv_file, const ModelPart& part);

// The mean microseconds that were spent neither in the client's send and receive nor in the
// server's queue, computation and cache; never below 0.
std::uint64_t network_us(const LevelResult& result);

}  // namespace septet::measure
