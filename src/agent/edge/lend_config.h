// The lend: part of septet.yaml: times, quotas, intervals.
//
//   lend:
//     default_time: 8h            # of an open-ended lease
//     idle_grace: 5m              # between the warning and the reclaim
//     kill_grace: 30s             # between being asked to end and being killed
//     starving_after: 30m         # then nothing younger is preferred
//     may_change_layout: true     # idle partitions may be re-laid
//     quota: {leases: 4, gpu_percent: 200, memory: 40GB, time: 24h}
//     users: {ada: {leases: 7}}
//     groups: {vision: {gpu_percent: 300}}
#pragma once

#include <string>

#include "base/result.h"
#include "lend/edge/lender.h"

namespace septet::agent {

// kUsage names the key that is unknown or wrong; other parts of the file are not looked at.
Result<lend::LenderOptions> read_lender_options(const std::string& path);
Result<lend::LenderOptions> parse_lender_options(const std::string& yaml);

}  // namespace septet::agent
