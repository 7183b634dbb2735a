#include "balance/sequence_table.h"

#include <functional>

namespace septet::balance {

std::string SequenceTable::key(std::string_view model, std::string_view id) {
  std::string key = std::string(model) + '\n' + std::string(id);
  if (key.size() > kMostKeyBytes) {
    key = "\n" + std::to_string(key.size()) + ' ' + std::to_string(std::hash<std::string>()(key));
  }
  return key;
}

std::optional<ReplicaIndex> SequenceTable::find(Instant now, const std::string& key) {
  const auto found = sequences_.find(key);
  if (found == sequences_.end()) {
    return std::nullopt;
  }
  found->second.used = now;
  return found->second.replica;
}

void SequenceTable::begin(Instant now, const std::string& key, ReplicaIndex replica) {
  sequences_.insert_or_assign(key, Sequence{replica, now});
}

std::optional<ReplicaIndex> SequenceTable::end(const std::string& key) {
  const auto found = sequences_.find(key);
  if (found == sequences_.end()) {
    return std::nullopt;
  }
  const ReplicaIndex replica = found->second.replica;
  sequences_.erase(found);
  return replica;
}

std::vector<ReplicaIndex> SequenceTable::end_idle(Instant since, std::optional<ReplicaIndex> of) {
  std::vector<ReplicaIndex> ended;
  std::erase_if(sequences_, [&](const auto& entry) {
    const bool idle = entry.second.used <= since && (!of || entry.second.replica == *of);
    if (idle) {
      ended.push_back(entry.second.replica);
    }
    return idle;
  });
  return ended;
}

}  // namespace septet::balance
