// LevelResult: everything that was measured at one level of load.
//
// Made by the load generator, read by the CSV and console writers, by compare and by the report. A
// value type. Latencies are durations in nanoseconds inside histograms; percentiles are asked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "measure/gpu_metrics.h"
#include "measure/histogram.h"
#include "measure/measurement_rules.h"

namespace septet::measure {

// Why a request got no good answer.
enum class FailureKind {
  kConnect,   // no connection: refused, unreachable, no such socket
  kReset,     // the connection broke before the whole answer was there
  kTimeout,   // no whole answer within the request timeout
  kProtocol,  // the answer is not HTTP or not what the protocol says
  kRefused,   // 503 or 429: the server said it has no room
  kRejected,  // any other 4xx: the server thinks that the request is wrong
  kServer,    // any other 5xx
  kWrong,     // a good answer whose outputs are not the expected ones
};
constexpr std::size_t kFailureKinds = 8;
// "connect", "reset", "timeout", "protocol", "refused", "rejected", "server", "wrong".
const char* to_string(FailureKind kind);

// Failed requests by kind. A failed request is in no latency and in no throughput.
class FailureCounts {
 public:
  void add(FailureKind kind, std::uint64_t count = 1) {
    counts_[static_cast<std::size_t>(kind)] += count;
  }
  void merge(const FailureCounts& other) {
    for (std::size_t i = 0; i < kFailureKinds; ++i) {
      counts_[i] += other.counts_[i];
    }
  }
  std::uint64_t of(FailureKind kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  std::uint64_t total() const {
    return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
  }
  // "3 connect, 1 reset"; "none" when there is no failure.
  std::string text() const;
  bool operator==(const FailureCounts&) const = default;

 private:
  std::array<std::uint64_t, kFailureKinds> counts_{};
};

// A count and the nanoseconds that belong to it, as the server's statistics have them.
struct ServerDuration {
  std::uint64_t count = 0;
  std::uint64_t ns = 0;
  // Means, truncated as perf_analyzer does; 0 without a count.
  std::uint64_t mean_ns() const { return count == 0 ? 0 : ns / count; }
  std::uint64_t mean_us() const { return mean_ns() / 1000; }
  bool operator==(const ServerDuration&) const = default;
};

// What the server's own statistics say about the measured time (a difference of two snapshots).
struct ServerStatistics {
  std::uint64_t inference_count = 0;
  std::uint64_t execution_count = 0;
  ServerDuration success, queue, compute_input, compute_infer, compute_output, cache_hit,
      cache_miss;

  // Mean nanoseconds of a request that are in no other counter.
  std::uint64_t overhead_ns() const;
  // Counters that went back (a restarted server) give 0, not a huge number.
  static ServerStatistics difference(const ServerStatistics& later,
                                     const ServerStatistics& earlier);
  void merge(const ServerStatistics& other);
  bool operator==(const ServerStatistics&) const = default;
};

// The counters at one moment, of the model and of its parts in the description's order.
struct ServerSnapshot {
  ServerStatistics model{};
  std::vector<ServerStatistics> parts{};
};

// mean +- half_width, 95 %.
struct ConfidenceInterval {
  double mean = 0;
  double half_width = 0;
};

// One window of a level.
struct WindowResult {
  Duration start{};     // since the level began
  Duration duration{};  // as it really was
  std::uint64_t completed = 0;
  FailureCounts failures;
  std::uint64_t delayed = 0;  // open loop: sent after the instant they were due
  double throughput = 0;      // inferences per second
  double mean_latency_us = 0;
  double deviation_us = 0;       // standard deviation of the latency
  double judged_latency_us = 0;  // the mean, or the percentile that was asked for
  bool merged = false;           // belongs to the figures of the level
};

struct LevelResult {
  Level level;
  int batch_size = 1;
  std::optional<int> percentile;  // the judged percentile; none = the mean is judged

  Duration measured{};          // of the merged windows together
  std::uint64_t completed = 0;  // requests answered well within the merged windows
  FailureCounts failures;       // within the merged windows
  std::uint64_t delayed = 0;
  std::uint64_t sequences = 0;  // sequences that ended
  double throughput = 0;        // inferences per second: completed x batch size / measured
  std::optional<ConfidenceInterval> throughput_interval;  // from windows as batches
  std::optional<ConfidenceInterval> latency_interval;     // of the judged latency, us

  // From the instant the request was due to the end of its answer. In closed loops a request is due
  // when it is sent, so both histograms are equal.
  Histogram latency;
  Histogram sent_latency;      // from the instant it was really sent
  double mean_send_us = 0;     // writing the request
  double mean_receive_us = 0;  // first to last byte of the answer
  double send_lag_p99_us = 0;  // open loop: how late requests left

  bool has_server_statistics = false;  // the server lists the statistics extension and answered
  bool has_response_cache = false;     // the model's response cache is on
  ServerStatistics server;
  std::vector<ServerStatistics> parts;  // of an ensemble's parts, in the description's order
  std::optional<GpuFigures> gpus;       // from the server's metrics, where they are collected

  bool stable = false;       // the rule was met; false: kept and marked
  bool over_limit = false;   // the judged latency exceeds the latency limit
  bool interrupted = false;  // stopped by the user: what was measured so far
  std::vector<WindowResult> windows;
  std::string last_failure;  // what the latest failed request met with; empty = no failure

  // Checks of the measurement itself.
  double in_flight_mean = 0;     // throughput x mean latency (Little); compare with the level
  double generator_busy = 0;     // share of the measured time this generator's threads were on CPU
  bool generator_bound = false;  // the generator, not the server, may have been the limit

  // Microseconds; of latency from the due instant.
  double percentile_us(double percent) const { return latency.percentile_ns(percent) / 1e3; }
  double p50_us() const { return percentile_us(50); }
  double p90_us() const { return percentile_us(90); }
  double p95_us() const { return percentile_us(95); }
  double p99_us() const { return percentile_us(99); }
  double mean_us() const { return latency.mean_ns() / 1e3; }
  double standard_deviation_us() const { return latency.standard_deviation_ns() / 1e3; }
  // What stability was judged by.
  double judged_latency_us() const { return percentile ? percentile_us(*percentile) : mean_us(); }
};

}  // namespace septet::measure
