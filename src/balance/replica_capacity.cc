#include "balance/replica_capacity.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "balance/reply_json.h"

namespace septet::balance {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMost = 1024;

std::int64_t number(const Json& object, const char* key, std::int64_t otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>()
                                                             : otherwise;
}

std::uint32_t bounded(std::int64_t value) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 1, kMost));
}

}  // namespace

std::optional<ReplicaCapacity> parse_capacity(std::string_view config_json) {
  const Json config = parse_reply(config_json);
  if (!config.is_object() || !config.contains("name")) {
    return std::nullopt;
  }
  ReplicaCapacity capacity;
  if (config.contains("dynamic_batching") && config["dynamic_batching"].is_object()) {
    capacity.batch_cap = bounded(number(config, "max_batch_size", 1));
  }
  std::int64_t instances = 0;
  if (const auto groups = config.find("instance_group");
      groups != config.end() && groups->is_array()) {
    for (const Json& group : *groups) {
      instances +=
          group.is_object() ? std::clamp<std::int64_t>(number(group, "count", 1), 0, kMost) : 0;
    }
  }
  capacity.instances = bounded(instances);
  return capacity;
}

}  // namespace septet::balance
