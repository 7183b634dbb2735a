// TraceSettings: which requests are traced. A state machine without clock or threads.
//
// Owned by the tracer and called under its lock. The rules are those of Triton's trace extension:
//
//   global settings --(a model's own fields stand above them)--> what holds for a model
//
// - Every trace_rate-th request is traced, until trace_count traces are begun (-1 = no end).
// - A model with a field of its own counts its requests and traces by itself; all others count
//   together.
// - A change of a scope's settings starts its counting anew.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace septet::serve {

struct TraceSetting {
  bool timestamps = false;  // trace_level: TIMESTAMPS, else OFF
  std::uint32_t rate = 1000;
  std::int64_t count = -1;
  std::uint32_t log_frequency = 0;  // 0: all into one file, else so many traces into each

  bool operator==(const TraceSetting&) const = default;
};

// A change of some fields. The outer optional: is it mentioned; the inner: its value, or back to
// what is global (to the server's start, if it is the global one).
struct TraceChange {
  template <typename T>
  using Field = std::optional<std::optional<T>>;
  Field<bool> timestamps{};
  Field<std::uint32_t> rate{};
  Field<std::int64_t> count{};
  Field<std::uint32_t> log_frequency{};
};

class TraceSettings {
 public:
  explicit TraceSettings(const TraceSetting& start) : start_(start), global_{start} {}

  // An empty model means the global settings.
  void change(const std::string& model, const TraceChange& change);
  // What holds for a model; count is what is left of it.
  TraceSetting of(const std::string& model) const;
  // Whether any request of any model may be traced.
  bool is_on() const;
  // Whether this request of the model is traced; counts it.
  bool sample(const std::string& model);

 private:
  struct Counter {
    std::uint64_t requests = 0;
    std::int64_t begun = 0;
  };
  struct OwnFields {
    std::optional<bool> timestamps{};
    std::optional<std::uint32_t> rate{};
    std::optional<std::int64_t> count{};
    std::optional<std::uint32_t> log_frequency{};
    Counter counter{};
  };

  TraceSetting start_;
  struct {
    TraceSetting setting{};
    Counter counter{};
  } global_;
  std::map<std::string, OwnFields> own_;  // of the models that have any
};

// What the server is started with.
struct TraceStart {
  TraceSetting setting{};
  std::string file{};  // empty = nothing can be traced
};

// One --trace-config: rate=N, count=N, level=TIMESTAMPS, mode=triton, triton,file=PATH or
// triton,log-frequency=N. kUsage names what is not known or not offered.
Result<Ok> apply_trace_config(std::string_view text, TraceStart& start);

}  // namespace septet::serve
