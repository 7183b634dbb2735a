// ServiceTimes: how long a model's inference takes, by slice and batch: what the `timed` backend
// goes by. A value, read from CSV; pure.
//
// Two forms are read:
//   model,slice,batch,latency_us                       septet's own (written by septet compare)
//   Mig instance,Batch size,Workload Number,Throughput,Latency     one model's profile of the
//                                                      ParvaGPU artifact: slices in GPCs, seconds
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/prng.h"
#include "base/result.h"
#include "base/time.h"

namespace septet::serve {

class ServiceTimes {
 public:
  // model picks the rows of the first form; the second form has one model a file. kUsage names
  // the line that cannot be read; kNotFound when no row is left.
  static Result<ServiceTimes> parse(std::string_view csv, std::string_view model);

  // Of one batch on a slice of that size ("1g", "3g", or a whole profile name such as 1g.5gb).
  // Between measured batch sizes linear, beyond the largest in proportion. kNotFound for a slice
  // that was not measured: names those that were.
  Result<Duration> time(std::string_view slice, int batch) const;

 private:
  std::map<std::string, std::map<int, Duration>> by_slice_;
};

// Makes times vary: seeded, so that a run can be repeated.
struct TimeVariation {
  double jitter = 0;        // standard deviation as a share of the time, log-normal
  double stall_chance = 0;  // of one inference
  Duration stall{};         // added when it stalls
};
Duration vary(Duration time, const TimeVariation& variation, Prng& prng);

}  // namespace septet::serve
