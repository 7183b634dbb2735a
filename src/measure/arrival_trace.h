// ArrivalTrace: the instants at which real clients sent requests, to be replayed.
//
// Understands the Azure LLM inference traces: a header line with TIMESTAMP first, then rows whose
// first field is "YYYY-MM-DD hh:mm:ss[.fraction]", in order of time; other fields are not used.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace septet::measure {

// The gap before each request; the first is zero. A speed of 2 halves every gap. kUsage names the
// line that is wrong.
Result<std::vector<Duration>> parse_arrival_trace(std::string_view text, double speed);

}  // namespace septet::measure
