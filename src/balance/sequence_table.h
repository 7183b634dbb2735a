// SequenceTable: which replica has which sequence of requests.
//
//   unknown -- first request --> at a replica -- last request, failure, ten idle minutes -->
//   unknown
//
// The state of a sequence is in one replica, so all its requests go there; when that replica fails,
// the sequence is gone, and the next request of it is answered by a replica that does not know it.
// Owned by the Reactor, used by its thread. Every entry stands for one pin at the Dispatcher.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "balance/dispatcher.h"
#include "base/time.h"

namespace septet::balance {

class SequenceTable {
 public:
  static constexpr std::size_t kMost = 65536;
  static constexpr Duration kIdle = seconds(600);
  static constexpr std::size_t kMostKeyBytes = 512;

  // Sequences of two models are two. Of a long id its hash stands for it, so that clients cannot
  // fill the memory with ids.
  static std::string key(std::string_view model, std::string_view id);

  std::size_t size() const { return sequences_.size(); }
  bool full() const { return sequences_.size() >= kMost; }
  // The replica that has it, which it keeps from being forgotten.
  std::optional<ReplicaIndex> find(Instant now, const std::string& key);
  void begin(Instant now, const std::string& key, ReplicaIndex replica);
  // The replica that had it, to be unpinned.
  std::optional<ReplicaIndex> end(const std::string& key);
  // The same of those that nobody has asked for since that instant; of all, or of one replica's.
  std::vector<ReplicaIndex> end_idle(Instant since, std::optional<ReplicaIndex> of = {});

 private:
  struct Sequence {
    ReplicaIndex replica;
    Instant used{};
  };
  std::map<std::string, Sequence, std::less<>> sequences_;
};

}  // namespace septet::balance
