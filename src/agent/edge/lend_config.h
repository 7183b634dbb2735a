// What septet.yaml says about lending: under lend: the times and quotas, under sharing: how each
// GPU is shared.
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
//   sharing:                      # agent/sharing_rules.h
//     - {gpus: [0, 1], technique: mig}
//     - {gpus: 2, technique: mps, clients: 4}
//     - {gpus: 3, technique: time_slice, slice: short}
#pragma once

#include <string>
#include <vector>

#include "agent/sharing_rules.h"
#include "base/result.h"
#include "lend/edge/lender.h"

namespace septet::agent {

struct LendConfig {
  lend::LenderOptions lender;
  std::vector<SharingRule> sharing;
};

// kUsage names file, line and key of what is unknown or wrong; other parts of the file are not
// looked at.
Result<LendConfig> read_lend_config(const std::string& path);
// The same of a text; file names it in messages.
Result<LendConfig> parse_lend_config(const std::string& yaml, const std::string& file);

}  // namespace septet::agent
