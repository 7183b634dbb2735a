// Statistics of one model version, in the protocol's terms (inference protocol, 1.6).
//
// A value: the scheduler records into its own under its lock and hands out copies. Counters only
// grow, and the three compute counters always agree: clients subtract two snapshots.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/time.h"
#include "inference/json_writer.h"

namespace septet::serve {

struct DurationCount {
  std::uint64_t count = 0;
  std::uint64_t ns = 0;

  void add(Duration duration, std::uint64_t times = 1);
  DurationCount& operator+=(const DurationCount& other);
};

// When a request passed each stage; equal instants mean that the stage took no time.
struct RequestTimes {
  Instant arrival{};
  Instant compute_start{};  // the instance took it
  Instant infer_start{};    // inputs are in place
  Instant infer_end{};
  Instant output_end{};  // outputs are split and ready to send
};

struct BatchStatistics {
  DurationCount compute_input{};
  DurationCount compute_infer{};
  DurationCount compute_output{};
};

struct ModelStatistics {
  std::uint64_t last_inference_ms = 0;  // since 1970
  std::uint64_t inference_count = 0;
  std::uint64_t execution_count = 0;
  DurationCount success{};
  DurationCount fail{};
  DurationCount queue{};
  DurationCount compute_input{};
  DurationCount compute_infer{};
  DurationCount compute_output{};
  DurationCount cache_hit{};
  DurationCount cache_miss{};
  std::map<std::uint64_t, BatchStatistics> batches{};  // by size of the executed batch
  std::uint64_t rejected = 0;                          // of the failures: queue full or timed out
  std::uint64_t cancelled = 0;                         // of the failures: not executed
  std::uint64_t busy_ns = 0;                           // time that instances spent computing
  std::uint64_t pending = 0;                           // queued now

  // One execution of requests that together have this batch size.
  void record_execution(std::uint64_t batch_size, const RequestTimes& times, std::uint64_t unix_ms);
  // One answered request of an execution.
  void record_success(const RequestTimes& times);
  void record_failure(Duration total);
  // One request answered from the response cache.
  void record_cache_hit(const RequestTimes& times, std::uint64_t unix_ms);

  ModelStatistics& operator+=(const ModelStatistics& other);
};

// One element of "model_stats".
void write_statistics(inference::JsonWriter& json, const std::string& model,
                      const std::string& version, const ModelStatistics& statistics);

}  // namespace septet::serve
