// Duration and Instant: the time of the deciding code.
//
// An Instant is nanoseconds on a monotonic clock whose zero has no meaning. Nothing in the deciding
// folders reads a clock: the edge does (os/clock.h) and hands instants in.
#pragma once

#include <chrono>
#include <cstdint>

namespace septet {

using Duration = std::chrono::nanoseconds;

// Names the clock of Instant; it cannot be asked for the time.
struct MonotonicClock {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
};

using Instant = std::chrono::time_point<MonotonicClock, Duration>;

constexpr Duration microseconds(std::int64_t count) { return std::chrono::microseconds(count); }
constexpr Duration milliseconds(std::int64_t count) { return std::chrono::milliseconds(count); }
constexpr Duration seconds(std::int64_t count) { return std::chrono::seconds(count); }

constexpr double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}
constexpr double to_microseconds(Duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}
// Rounds to the nearest nanosecond.
constexpr Duration from_seconds(double value) {
  return Duration(static_cast<std::int64_t>(value * 1e9 + (value < 0 ? -0.5 : 0.5)));
}

}  // namespace septet
