// LoadSchedule: the instants at which an open loop's requests are due.
//
// Decided ahead of and independently of what the server does, so that a slow answer cannot thin out
// the load (coordinated omission). Owned by the load generator; one thread.
#pragma once

#include <optional>
#include <vector>

#include "base/prng.h"
#include "base/time.h"
#include "measure/measurement_rules.h"

namespace septet::measure {

class LoadSchedule {
 public:
  // One request every 1 / rate seconds. rate > 0, requests per second.
  static LoadSchedule constant(double rate);
  // Exponential gaps with mean 1 / rate; the same seed gives the same schedule.
  static LoadSchedule poisson(double rate, std::uint64_t seed);
  // The given gaps in turn, over and over. Not empty; their sum is positive.
  static LoadSchedule intervals(std::vector<Duration> gaps);

  // When the next request is due, since the start of the load. Never falls.
  Duration next();

 private:
  LoadSchedule() = default;

  double rate_ = 0;
  std::vector<Duration> gaps_;
  std::optional<Prng> prng_;
  std::uint64_t count_ = 0;
  Duration at_{};
  double poisson_at_ = 0;  // seconds; a sum of doubles, so that rounding cannot bias the rate
};

// The rate that perf_analyzer prints for a list of gaps: count x 10^9 / total, in whole numbers.
// Below one request per second, where that would be 0, the exact rate.
double shown_rate(const std::vector<Duration>& gaps);

}  // namespace septet::measure
