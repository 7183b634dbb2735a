// SequenceBatcher: which requests of stateful sequences run next. A state machine like Batcher.
//
// Owned by one model's scheduler and called under its lock.
//
//   START --> active (has a slot of one instance)  --END answered, or idle too long--> gone
//         \-> waiting for a slot ----------------^
//
// - A sequence's requests run in order, one at a time, on the instance that holds its slot.
// - An instance has max_batch_size slots (direct) or max_candidate_sequences (oldest). Sequences
//   beyond that wait in order of their start.
// - A batch takes one request of each sequence that has one, the oldest first. No backend here
// keeps
//   state by position in the batch, so empty slots are left out instead of being sent as not ready.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "inference/tensor.h"
#include "serve/batcher.h"

namespace septet::serve {

// A sequence's name: "n:" and its number, or "s:" and its text.
using SequenceKey = std::string;
SequenceKey sequence_key(const inference::SequenceId& id);

class SequenceBatcher {
 public:
  enum class Admission { kQueued, kNotStarted };

  SequenceBatcher(int max_batch_size, int instances, const inference::SequenceBatching& batching);

  struct Request {
    Ticket ticket = 0;
    SequenceKey key{};
    bool start = false;
    bool end = false;
  };
  // kNotStarted: the first request of a sequence must have START.
  Admission push(Instant now, const Request& request);

  // Whether take() would give something.
  bool is_due(Instant now, int instance) const;
  // The next batch for a free instance; each taken request must be reported by finish().
  std::vector<Ticket> take(Instant now, int instance);
  void finish(Instant now, const std::vector<SequenceKey>& keys);

  // The sequences that ended since the last call: their state can go.
  std::vector<SequenceKey> take_ended(Instant now);
  // The first instant after now at which take or take_ended may have something new without another
  // push or finish. What is due already is some instance's to take.
  std::optional<Instant> next_deadline(Instant now) const;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  struct Item {
    Ticket ticket = 0;
    Instant arrival{};
    bool start = false;
    bool end = false;
  };
  struct Sequence {
    SequenceKey key{};
    std::deque<Item> queue{};
    std::optional<int> instance{};  // nothing = waits for a slot
    bool in_flight = false;
    bool in_flight_ends = false;
    bool end_seen = false;  // the newest request has END: only START may follow
    Instant last_activity{};
  };
  using Sequences = std::list<Sequence>;  // in order of their start

  void give_slots();
  std::vector<const Sequence*> next_batch(Instant now, int instance) const;
  void end(Sequences::iterator sequence);

  std::size_t max_batch_size_;
  std::size_t slots_per_instance_;
  std::vector<std::size_t> used_slots_;  // by instance
  Duration max_idle_;
  Duration max_queue_delay_;
  std::vector<int> preferred_;
  Sequences sequences_;
  std::map<SequenceKey, Sequences::iterator> by_key_;
  std::vector<SequenceKey> ended_;
  std::size_t size_ = 0;
};

}  // namespace septet::serve
