// ReplicaCapacity: how much of one model a replica takes at a time, read from its model config.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace septet::balance {

struct ReplicaCapacity {
  std::uint32_t instances = 1;  // batches that run at the same time
  std::uint32_t batch_cap = 1;  // requests in one batch; more than 1 only with dynamic batching

  bool operator==(const ReplicaCapacity&) const = default;
};

// From the reply to GET /v2/models/M/config; nothing when it is no model config. An instance group
// without a count has one; groups add up; both numbers stay within 1..1024.
std::optional<ReplicaCapacity> parse_capacity(std::string_view config_json);

}  // namespace septet::balance
