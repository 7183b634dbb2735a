// The only place that reads the clocks. Deciding code is handed instants instead.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace septet::os {

// Monotonic time now (CLOCK_MONOTONIC).
Instant now();

// Wall clock in nanoseconds since 1970 (CLOCK_REALTIME); for display and file stamps only.
std::int64_t unix_time_ns();

// Processor time that the calling thread has used (CLOCK_THREAD_CPUTIME_ID).
Duration thread_cpu_time();

}  // namespace septet::os
