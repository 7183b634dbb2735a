// Merging what several replicas answered into what one server would have answered.
//
// Pure text in, text out; JSON and Prometheus text as in the protocol (facts: HTTP/REST, 1.6, 1.8).
#pragma once

#include <string>
#include <vector>

#include "balance/route.h"

namespace septet::balance {

struct ReplicaReply {
  std::string replica;
  unsigned status = 0;  // 0 = no reply
  std::string content_type;
  std::string body;
};

struct MergedReply {
  unsigned status = 503;
  std::string content_type = "application/json";
  std::string body;
};

// How, by kind of route:
//   kAnyReplica       the first success, else the first error
//   kEveryReplica     success if all succeeded, else the first error
//   kStatistics       per model and version: counters summed, last_inference the latest
//   kRepositoryIndex  the union by name and version; READY if any replica says so
//   kMetrics          one text: samples with the same name and labels are summed if they count,
//                     averaged if they are gauges
// A reply that cannot be understood counts as none.
MergedReply merge_replies(RouteKind kind, const std::vector<ReplicaReply>& replies);

}  // namespace septet::balance
