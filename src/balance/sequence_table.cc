#include "balance/sequence_table.h"

#include <algorithm>

namespace septet::balance {

std::string SequenceTable::key(std::string_view model, std::string_view id) {
  return std::string(model) + '\n' + std::string(id);
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

std::optional<ReplicaIndex> SequenceTable::end_idle(Instant since, std::optional<ReplicaIndex> of) {
  const auto found = std::find_if(sequences_.begin(), sequences_.end(), [&](const auto& entry) {
    return entry.second.used <= since && (!of || entry.second.replica == *of);
  });
  if (found == sequences_.end()) {
    return std::nullopt;
  }
  const ReplicaIndex replica = found->second.replica;
  sequences_.erase(found);
  return replica;
}

}  // namespace septet::balance
