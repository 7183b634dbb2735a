#include "os/clock.h"

#include <ctime>

namespace septet::os {

namespace {

std::int64_t read_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

Instant now() { return Instant(Duration(read_ns(CLOCK_MONOTONIC))); }

Duration thread_cpu_time() { return Duration(read_ns(CLOCK_THREAD_CPUTIME_ID)); }

std::int64_t unix_time_ns() { return read_ns(CLOCK_REALTIME); }

}  // namespace septet::os
