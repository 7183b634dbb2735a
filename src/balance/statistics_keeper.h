// StatisticsKeeper: the whole service's statistics, which never go back.
//
// Remembers each replica's last answer to GET /v2/models/stats. When a replica leaves, or starts
// again from zero, what it had counted stays in the sum: clients subtract unsigned numbers, so a
// counter that falls would look like a huge load. Owned by the Reactor; pure.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace septet::balance {

class StatisticsKeeper {
 public:
  // What the replica has answered; false when it is no statistics document.
  bool record(const std::string& replica, std::string_view body);
  // The replica has gone for good.
  void departed(const std::string& replica);
  // {"model_stats":[...]} of the named model and version (empty = all), or nothing when no replica
  // ever told of such a model.
  std::optional<std::string> document(std::string_view model, std::string_view version) const;

 private:
  using Json = nlohmann::ordered_json;
  using Key = std::pair<std::string, std::string>;  // model, version
  using Models = std::map<Key, Json>;

  std::map<std::string, Models> last_;  // by replica
  Models gone_;                         // of replicas and of earlier lives
};

}  // namespace septet::balance
