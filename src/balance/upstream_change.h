// UpstreamChange: what somebody wants changed in the set of replicas while the balancer runs.
//
//   PUT    {"upstreams":["unix:/run/a.sock name=a"]}   these and no others
//   POST   {"upstreams":["10.0.0.7:8000"]}             these as well
//   DELETE {"upstreams":["a"]}                         without these: the line, address or name
//
// Pure: lines in, lines out. Whether a line names a replica is edge/upstream_source.h's to say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace septet::balance {

struct UpstreamChange {
  enum class Kind { kReplace, kAdd, kRemove };
  Kind kind = Kind::kReplace;
  std::vector<std::string> lines;
};

// kUsage: another method, or a body that is not as above.
Result<UpstreamChange> parse_upstream_change(std::string_view method, std::string_view body);

// The lines after the change; one that is there already is not added again. kNotFound names what
// should go and is not there; then nothing is changed.
Result<std::vector<std::string>> apply_change(std::vector<std::string> lines,
                                              const UpstreamChange& change);

}  // namespace septet::balance
