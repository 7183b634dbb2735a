// Batcher: which queued requests run together, and when. A state machine without clock or threads.
//
// Owned by one model's scheduler and called under its lock. The rules are those of Triton's dynamic
// batcher (inference protocol, section 7):
//
//   push --> [ level 1: queue | delayed ] [ level 2: queue | delayed ] ... --take--> batch
//                 | time-out REJECT            (lower levels wait)
//                 v
//             take_expired
//
// - An instance that is free takes from the front, level 1 first. Requests of another shape, or too
//   large for what is left, start the next batch.
// - The largest preferred size that the front forms is sent at once; so is what cannot grow any
//   more. Anything else waits until the oldest has waited max_queue_delay.
// - Without dynamic batching every request is a batch of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "base/time.h"
#include "inference/model_config.h"

namespace septet::serve {

// Names one queued request; given by the caller, unique while it is queued.
using Ticket = std::uint64_t;

struct BatchRequest {
  Ticket ticket = 0;
  int batch_size = 1;            // 1..max_batch_size, or 1 for a model without batch dimension
  std::uint64_t shape_key = 0;   // equal for requests that may share a batch
  std::uint64_t priority = 0;    // as the request says
  std::uint64_t timeout_us = 0;  // as the request says
};

class Batcher {
 public:
  enum class Admission { kQueued, kQueueFull };

  // max_batch_size 0 counts as 1. Without a batching configuration a request's own timeout counts.
  Batcher(int max_batch_size, const std::optional<inference::DynamicBatching>& batching);

  Admission push(Instant now, const BatchRequest& request);

  // The next batch for a free instance, in order; empty when there is nothing to run now.
  std::vector<Ticket> take(Instant now);

  // The same without waiting for a batch to grow: for a queue that gets no more requests.
  std::vector<Ticket> take_now(Instant now);

  // The requests whose time-out has come and whose policy rejects them; each is named once.
  std::vector<Ticket> take_expired(Instant now);

  // Forgets a queued request; false when it is not queued.
  bool cancel(Ticket ticket);

  // When take or take_expired may have something new without another push; nothing = never. An
  // instant that has passed means now.
  std::optional<Instant> next_deadline() const;

  // The first time-out of a queued request; nothing when none can time out.
  std::optional<Instant> next_time_out() const;
  bool has_time_outs() const { return next_time_out().has_value(); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  struct Item {
    BatchRequest request{};
    Instant arrival{};
    std::optional<Instant> deadline{};
  };
  struct Level {
    inference::QueuePolicy policy{};
    std::deque<Item> queue{};
    std::deque<Item> delayed{};          // timed out under DELAY: after all others of the level
    std::multiset<Instant> deadlines{};  // of the items in queue
    void forget_deadline(const Item& item);
  };
  struct Front {
    std::size_t count = 0;      // requests that fit together
    std::size_t preferred = 0;  // of them, those that form the largest preferred size; 0 = none
    bool can_grow = true;       // more requests could join
    Instant oldest{};
  };

  Level& level_of(std::uint64_t priority);
  Front look_at_front() const;
  bool is_preferred(int batch_size) const;
  Ticket pop_front();
  std::vector<Ticket> take_front(std::size_t count);
  void expire(Instant now);

  int max_batch_size_;
  bool batching_ = false;
  std::vector<int> preferred_;
  Duration max_queue_delay_{};
  std::uint32_t default_level_ = 1;
  std::vector<Level> levels_;  // index 0 is priority level 1
  std::size_t size_ = 0;
  std::vector<Ticket> expired_;  // rejected, not yet reported
};

}  // namespace septet::serve
