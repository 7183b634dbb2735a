// ResultRow: one cell of an experiment (technique x replicas x concurrency), and results.csv.
//
// results.csv keeps every cell of a run, in the order measured, so a row can be appended as soon as
// its cell is finished:
//
//   technique,replicas,concurrency,throughput,p50,p90,p95,p99,errors,seed,machine,commit,
//   model,gpu,simulated,stable,throughput_half_width,p90_half_width,profile,limited
//
// Throughput is inferences per second, latencies are microseconds. Readers go by the names in the
// header, so columns may be added behind these; that is the format's version. Values, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "measure/level_result.h"

namespace septet::measure {

// What a cell was measured on; the caller of the load generator knows it.
struct ResultContext {
  std::string run{};        // tells runs apart when several are compared; not in the file
  std::string technique{};  // "mig", "time-slicing", "mps", "streams", or the name of a foreign run
  int replicas = 1;         // 0 = unknown, in a foreign run
  std::uint64_t seed = 0;
  std::string machine{};   // e.g. "2 cores, Intel Xeon 2.8 GHz"
  std::string commit{};    // of septet
  std::string model{};     // e.g. "densenet_onnx"
  std::string profile{};   // of the partitions, e.g. "1g.5gb"; empty = undivided or unknown
  std::string gpu{};       // e.g. "A100-SXM4-40GB"
  bool simulated = false;  // the GPU was simulated: slices of a processor, not of a GPU
  bool limited = true;     // false: simulated slices had no limits, so they compare nothing

  bool operator==(const ResultContext&) const = default;
};

struct ResultRow {
  ResultContext context{};
  LoadMode load = LoadMode::kConcurrency;  // what the level counts; not in the file
  int concurrency = 1;                     // requests in flight, or requests due a second
  double throughput = 0;
  double p50_us = 0;
  double p90_us = 0;
  double p95_us = 0;
  double p99_us = 0;
  std::uint64_t errors = 0;
  bool stable = true;  // false: measured, but the windows did not agree; kept and marked
  // Half the width of the 95 % confidence interval, where there is one.
  std::optional<double> throughput_half_width{};
  std::optional<double> p90_half_width_us{};

  bool operator==(const ResultRow&) const = default;
};

// The row of a measured level. The latency interval is taken over when p90 was the judged latency.
ResultRow result_row(const ResultContext& context, const LevelResult& level);

// One line with its line end.
std::string results_header();
std::string results_line(const ResultRow& row);

// Every row of a results.csv. Names the line and what is wrong with it (kFailed); source is the
// name used in messages. A last line without its line end was cut off by a crash: it is left out.
Result<std::vector<ResultRow>> parse_results(std::string_view text, std::string_view source);

}  // namespace septet::measure
