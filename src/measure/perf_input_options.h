// The part of perf_analyzer's words that is about what the requests carry.
//
// Pure; used by plan_of().
#pragma once

#include "base/result.h"
#include "measure/perf_options.h"

namespace septet::measure {

// Data, shapes, batch size, parameters, shared memory. kUsage with what is wrong.
Result<Ok> read_input(const PerfArguments& arguments, PerfPlan& plan);

// The models that a BLS model calls. kUsage with what is wrong.
Result<Ok> read_called_models(const PerfArguments& arguments, PerfPlan& plan);

// Length and ids of sequences. kUsage with what is wrong.
Result<Ok> read_sequences(const PerfArguments& arguments, PerfPlan& plan);

}  // namespace septet::measure
