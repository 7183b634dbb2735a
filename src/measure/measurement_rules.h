// What a measurement asks for: the levels of load and the rules by which a level is finished.
//
// Plain values, made from the command line (measure/perf_options.h) or by a program that measures
// in process. The defaults are perf_analyzer's.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace septet::measure {

enum class LoadMode {
  kConcurrency,  // closed loop: so many requests in flight, the next is sent when one is answered
  kRequestRate,  // open loop: requests are due by a schedule, whatever the server does
  kIntervals,    // open loop with given gaps between requests (a file, a trace)
};

enum class RequestDistribution { kConstant, kPoisson };

// One point of the sweep.
struct Level {
  LoadMode mode = LoadMode::kConcurrency;
  double value = 1;  // requests in flight, or requests per second
  bool operator==(const Level&) const = default;
};

// When a level is finished. A window ends after its time or, with count windows, when enough
// requests have been answered.
struct MeasurementRules {
  Duration window = milliseconds(5000);
  // A window really lasts 1.2 x its nominal time, as perf_analyzer's does.
  double window_stretch = 1.2;
  std::optional<std::uint64_t> requests_per_window;  // set: count windows
  double stability_percent = 10;                     // of throughput and of the judged latency
  int max_windows = 10;
  std::optional<int> percentile;       // judge this latency percentile instead of the mean
  Duration latency_limit{};            // 0 = none; above it a sweep ends
  Duration warm_up{};                  // load before the first window that is not counted
  std::uint64_t warm_up_requests = 0;  // and so many answers before it
  Duration request_timeout = seconds(60);
  // Set: adaptive windows. A level ends as soon as the 95 % confidence intervals (batch means, a
  // window is a batch) of throughput and of the judged latency are within this percentage of their
  // values, and not by the three-window rule.
  std::optional<double> confidence_percent;
  // Set: just so many windows, all of which count; nothing is judged (a trace is replayed once).
  std::optional<int> fixed_windows;

  // Short windows, as many as it takes for intervals of +- 5 %, at most 60.
  static MeasurementRules adaptive();
};

// How many answers a window must have before it may end: batches shorter than a full turn of the
// requests in flight are not independent, so adaptive windows wait for that. 0 = time alone
// decides.
std::uint64_t requests_needed(const MeasurementRules& rules, const Level& level);

}  // namespace septet::measure
