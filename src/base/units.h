// Durations and memory sizes as people write them: "4h", "1h30m", "250ms"; "10GB", "512MiB".
//
// Values only; any thread. GPU tools count memory in binary units whatever they print, so G, GB and
// GiB are all 1024 MiB here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace septet {

// One or more numbers with a unit of ns, us, ms, s, m, h or d, largest first; "0" is allowed.
// kUsage names what is wrong.
Result<Duration> parse_duration(std::string_view text);
// The two largest units that matter: "1h 30m", "45s", "2d 3h", "250ms".
std::string format_duration(Duration duration);

// A number with a unit of MiB, M, MB, GiB, G, GB, TiB, T or TB; no unit means MiB. kUsage names
// what is wrong.
Result<std::int64_t> parse_memory_mib(std::string_view text);

}  // namespace septet
