// What replicas answer to the proxy's questions: statistics, index, metrics and model configs, from
// a peer that may be sick. The first byte chooses the question; nothing may crash or run away, and
// the sums of the statistics never go back.
#include <cstdint>
#include <string>

#include "balance/merge.h"
#include "balance/replica_capacity.h"
#include "balance/statistics_keeper.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace septet::balance;  // NOLINT: a fuzz target is all about one namespace
  if (size == 0) {
    return 0;
  }
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t half = body.size() / 2;
  const std::vector<ReplicaReply> replies = {{"a", 200, "application/json", body.substr(0, half)},
                                             {"b", 200, "application/json", body.substr(half)},
                                             {"c", 200, "application/json", body},
                                             {"d", 400, "application/json", body}};
  switch (data[0] % 5) {
    case 0:
      merge_replies(RouteKind::kStatistics, replies);
      break;
    case 1:
      merge_replies(RouteKind::kRepositoryIndex, replies);
      break;
    case 2:
      merge_replies(RouteKind::kMetrics, replies);
      break;
    case 3:
      if (const auto capacity = parse_capacity(body)) {
        CHECK(capacity->instances >= 1 && capacity->batch_cap >= 1);
      }
      break;
    default: {
      StatisticsKeeper keeper;
      for (const ReplicaReply& reply : replies) {
        keeper.record(reply.replica, reply.body);
      }
      keeper.departed("c");
      keeper.document("", "");
      break;
    }
  }
  return 0;
}
