#include "serve/sequence_batcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace septet::serve {

using inference::SequenceBatching;

SequenceKey sequence_key(const inference::SequenceId& id) {
  if (const auto* number = std::get_if<std::uint64_t>(&id)) {
    return fmt::format("n:{}", *number);
  }
  return "s:" + std::get<std::string>(id);
}

SequenceBatcher::SequenceBatcher(int max_batch_size, int instances,
                                 const SequenceBatching& batching)
    : max_batch_size_(static_cast<std::size_t>(std::max(max_batch_size, 1))),
      slots_per_instance_(max_batch_size_),
      used_slots_(static_cast<std::size_t>(std::max(instances, 1)), 0),
      max_idle_(batching.max_sequence_idle),
      max_queue_delay_(batching.max_queue_delay),
      preferred_(batching.preferred_batch_sizes) {
  if (batching.strategy == SequenceBatching::Strategy::kOldest) {
    slots_per_instance_ = static_cast<std::size_t>(std::max(batching.max_candidate_sequences, 1));
  } else {
    // Direct: how long a batch may wait for the given share of its slots to fill.
    const double share = static_cast<double>(batching.minimum_slot_utilization);
    const int least = static_cast<int>(share * static_cast<double>(slots_per_instance_));
    if (least > 1) {
      preferred_ = {least};
    } else {
      max_queue_delay_ = Duration::zero();
    }
  }
}

SequenceBatcher::Admission SequenceBatcher::push(Instant now, const Request& request) {
  auto found = by_key_.find(request.key);
  const bool open = found != by_key_.end() && !found->second->end_seen;
  if (!request.start && !open) {
    return Admission::kNotStarted;
  }
  if (found == by_key_.end()) {
    sequences_.push_back({.key = request.key});
    found = by_key_.emplace(request.key, std::prev(sequences_.end())).first;
  }
  Sequence& sequence = *found->second;
  sequence.queue.push_back({request.ticket, now, request.start, request.end});
  sequence.end_seen = request.end;
  sequence.last_activity = now;
  ++size_;
  give_slots();
  return Admission::kQueued;
}

// Sequences wait in order of their start; each goes to the instance with most room.
void SequenceBatcher::give_slots() {
  for (Sequence& sequence : sequences_) {
    if (sequence.instance) {
      continue;
    }
    const auto emptiest = std::min_element(used_slots_.begin(), used_slots_.end());
    if (*emptiest >= slots_per_instance_) {
      return;
    }
    ++*emptiest;
    sequence.instance = static_cast<int>(emptiest - used_slots_.begin());
  }
}

// The sequences whose front requests make up the instance's next batch; none when it must wait.
std::vector<const SequenceBatcher::Sequence*> SequenceBatcher::next_batch(Instant now,
                                                                          int instance) const {
  std::vector<const Sequence*> ready;
  for (const Sequence& sequence : sequences_) {
    if (sequence.instance == instance && !sequence.in_flight && !sequence.queue.empty()) {
      ready.push_back(&sequence);
    }
  }
  std::stable_sort(ready.begin(), ready.end(), [](const Sequence* a, const Sequence* b) {
    return a->queue.front().arrival < b->queue.front().arrival;
  });
  std::size_t count = std::min(ready.size(), max_batch_size_);
  if (count == 0) {
    return {};
  }
  const bool waited = now - ready.front()->queue.front().arrival >= max_queue_delay_;
  if (!waited && count < max_batch_size_) {
    // Until the delay is over only a preferred size goes.
    std::size_t best = 0;
    for (const int size : preferred_) {
      if (static_cast<std::size_t>(size) <= count) {
        best = std::max(best, static_cast<std::size_t>(size));
      }
    }
    count = best;
  }
  ready.resize(count);
  return ready;
}

bool SequenceBatcher::is_due(Instant now, int instance) const {
  return !next_batch(now, instance).empty();
}

std::vector<Ticket> SequenceBatcher::take(Instant now, int instance) {
  std::vector<Ticket> batch;
  for (const Sequence* next : next_batch(now, instance)) {
    Sequence& sequence = *by_key_.at(next->key);
    const Item item = sequence.queue.front();
    sequence.queue.pop_front();
    --size_;
    sequence.in_flight = true;
    sequence.in_flight_ends = item.end;
    batch.push_back(item.ticket);
  }
  return batch;
}

void SequenceBatcher::finish(Instant now, const std::vector<SequenceKey>& keys) {
  for (const SequenceKey& key : keys) {
    const auto found = by_key_.find(key);
    CHECK(found != by_key_.end() && found->second->in_flight);
    Sequence& sequence = *found->second;
    sequence.in_flight = false;
    sequence.last_activity = now;
    if (sequence.in_flight_ends && sequence.queue.empty()) {
      end(found->second);
    }
  }
  give_slots();
}

void SequenceBatcher::end(Sequences::iterator sequence) {
  if (sequence->instance) {
    --used_slots_[static_cast<std::size_t>(*sequence->instance)];
  }
  ended_.push_back(sequence->key);
  by_key_.erase(sequence->key);
  sequences_.erase(sequence);
}

std::vector<SequenceKey> SequenceBatcher::take_ended(Instant now) {
  for (auto sequence = sequences_.begin(); sequence != sequences_.end();) {
    const auto next = std::next(sequence);
    if (!sequence->in_flight && sequence->queue.empty() &&
        now - sequence->last_activity >= max_idle_) {
      end(sequence);
    }
    sequence = next;
  }
  give_slots();
  std::vector<SequenceKey> ended;
  ended.swap(ended_);
  return ended;
}

std::optional<Instant> SequenceBatcher::next_deadline(Instant now) const {
  std::optional<Instant> next;
  const auto consider = [&](Instant instant) {
    if (instant > now) {
      next = next ? std::min(*next, instant) : instant;
    }
  };
  for (const Sequence& sequence : sequences_) {
    if (sequence.in_flight) {
      continue;
    }
    if (sequence.queue.empty()) {
      consider(sequence.last_activity + max_idle_);
    } else if (sequence.instance) {
      consider(sequence.queue.front().arrival + max_queue_delay_);
    }
  }
  return next;
}

}  // namespace septet::serve
