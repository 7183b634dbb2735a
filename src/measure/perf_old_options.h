// perf_analyzer's words that septet perf says differently, or not at all.
//
// Pure. Scripts keep such words; each is either said anew in today's words, accepted when its value
// changes nothing, or refused by its name with what to do instead.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "measure/perf_options.h"

namespace septet::measure {

// The same request without -t, -c, -d, -z and --data-directory.
Result<PerfArguments> in_todays_words(PerfArguments arguments);

// An option that is known and not offered.
struct RefusedOption {
  const char* name;        // "--service-kind"
  bool takes_value;        // false: a flag
  const char* same_value;  // the value that asks for what septet perf does anyway; "" = none
  const char* instead;     // what to do
};

std::span<const RefusedOption> refused_options();

// --enable-mpi in this many processes, as mpirun's environment says; null = outside mpirun, where
// perf_analyzer measures by itself. kUsage for more than one.
Result<Ok> check_mpi(const char* processes);

// kUsage unless the value asks for what is done anyway.
Result<Ok> refuse(const RefusedOption& option, const std::string& value);

}  // namespace septet::measure
