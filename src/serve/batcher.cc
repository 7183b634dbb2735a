#include "serve/batcher.h"

#include <algorithm>

#include "base/check.h"

namespace septet::serve {

using inference::DynamicBatching;
using inference::QueuePolicy;

namespace {

// Levels beyond this are the last one: a configuration cannot ask for unbounded memory.
constexpr std::uint32_t kMaxLevels = 1024;

std::optional<Instant> deadline_of(const QueuePolicy& policy, Instant now,
                                   std::uint64_t timeout_us) {
  Duration timeout = policy.default_timeout;
  if (policy.allow_timeout_override && timeout_us > 0) {
    constexpr std::uint64_t kLongest = std::uint64_t{1} << 50;
    const Duration own = microseconds(static_cast<std::int64_t>(std::min(timeout_us, kLongest)));
    timeout = timeout == Duration::zero() ? own : std::min(timeout, own);
  }
  return timeout == Duration::zero() ? std::nullopt : std::optional(now + timeout);
}

}  // namespace

Batcher::Batcher(int max_batch_size, const std::optional<DynamicBatching>& batching)
    : max_batch_size_(std::max(max_batch_size, 1)) {
  if (!batching) {
    levels_.resize(1);
    levels_[0].policy.allow_timeout_override = true;
    return;
  }
  batching_ = max_batch_size > 0;
  preferred_ = batching->preferred_batch_sizes;
  if (preferred_.empty()) {
    preferred_.push_back(max_batch_size_);
  }
  max_queue_delay_ = batching->max_queue_delay;
  default_level_ = std::max(batching->default_priority_level, 1U);
  levels_.resize(std::clamp(batching->priority_levels, 1U, kMaxLevels));
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    const auto own = batching->priority_queue_policies.find(static_cast<std::uint32_t>(i + 1));
    levels_[i].policy = own == batching->priority_queue_policies.end()
                            ? batching->default_queue_policy
                            : own->second;
  }
}

Batcher::Level& Batcher::level_of(std::uint64_t priority) {
  const std::uint64_t level =
      priority >= 1 && priority <= levels_.size() ? priority : std::uint64_t{default_level_};
  return levels_[std::min<std::size_t>(level, levels_.size()) - 1];
}

Batcher::Admission Batcher::push(Instant now, const BatchRequest& request) {
  CHECK(request.batch_size >= 1 && request.batch_size <= max_batch_size_);
  Level& level = level_of(request.priority);
  const std::size_t waiting = level.queue.size() + level.delayed.size();
  if (level.policy.max_queue_size != 0 && waiting >= level.policy.max_queue_size) {
    return Admission::kQueueFull;
  }
  const Item item{request, now, deadline_of(level.policy, now, request.timeout_us)};
  if (item.deadline) {
    level.deadlines.insert(*item.deadline);
  }
  level.queue.push_back(item);
  ++size_;
  return Admission::kQueued;
}

bool Batcher::is_preferred(int batch_size) const {
  return std::find(preferred_.begin(), preferred_.end(), batch_size) != preferred_.end();
}

Batcher::Front Batcher::look_at_front() const {
  Front front;
  int total = 0;
  std::optional<std::uint64_t> shape_key;
  // Takes one more; false when the batch ends here.
  const auto join = [&](const Item& item) {
    if (shape_key && (*shape_key != item.request.shape_key ||
                      total + item.request.batch_size > max_batch_size_)) {
      front.can_grow = false;
      return false;
    }
    front.oldest = shape_key ? std::min(front.oldest, item.arrival) : item.arrival;
    shape_key = item.request.shape_key;
    total += item.request.batch_size;
    ++front.count;
    if (is_preferred(total)) {
      front.preferred = front.count;
    }
    if (!batching_ || total == max_batch_size_) {
      front.can_grow = false;
    }
    return front.can_grow;
  };
  for (const Level& level : levels_) {
    if (!std::all_of(level.queue.begin(), level.queue.end(), join) ||
        !std::all_of(level.delayed.begin(), level.delayed.end(), join)) {
      break;
    }
  }
  return front;
}

void Batcher::Level::forget_deadline(const Item& item) {
  if (item.deadline) {
    deadlines.erase(deadlines.find(*item.deadline));
  }
}

Ticket Batcher::pop_front() {
  for (Level& level : levels_) {
    std::deque<Item>& queue = level.queue.empty() ? level.delayed : level.queue;
    if (!queue.empty()) {
      const Item item = queue.front();
      level.forget_deadline(item);
      queue.pop_front();
      --size_;
      return item.request.ticket;
    }
  }
  CHECK(false);
  return 0;
}

std::vector<Ticket> Batcher::take(Instant now) {
  expire(now);
  const Front front = look_at_front();
  std::size_t count = front.preferred;
  if (count == 0 && (!front.can_grow || now - front.oldest >= max_queue_delay_)) {
    count = front.count;
  }
  return take_front(count);
}

std::vector<Ticket> Batcher::take_now(Instant now) {
  expire(now);
  return take_front(look_at_front().count);
}

std::vector<Ticket> Batcher::take_front(std::size_t count) {
  std::vector<Ticket> batch;
  batch.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    batch.push_back(pop_front());
  }
  return batch;
}

void Batcher::expire(Instant now) {
  for (Level& level : levels_) {
    if (level.deadlines.empty() || *level.deadlines.begin() > now) {
      continue;
    }
    level.deadlines.erase(level.deadlines.begin(), level.deadlines.upper_bound(now));
    std::deque<Item> kept;
    for (Item& item : level.queue) {
      if (!item.deadline || *item.deadline > now) {
        kept.push_back(item);
      } else if (level.policy.timeout_action == QueuePolicy::TimeoutAction::kDelay) {
        item.deadline.reset();
        level.delayed.push_back(item);
      } else {
        expired_.push_back(item.request.ticket);
        --size_;
      }
    }
    level.queue.swap(kept);
  }
}

std::vector<Ticket> Batcher::take_expired(Instant now) {
  expire(now);
  std::vector<Ticket> expired;
  expired.swap(expired_);
  return expired;
}

bool Batcher::cancel(Ticket ticket) {
  for (Level& level : levels_) {
    for (std::deque<Item>* queue : {&level.queue, &level.delayed}) {
      const auto found = std::find_if(queue->begin(), queue->end(), [&](const Item& item) {
        return item.request.ticket == ticket;
      });
      if (found != queue->end()) {
        level.forget_deadline(*found);
        queue->erase(found);
        --size_;
        return true;
      }
    }
  }
  return false;
}

std::optional<Instant> Batcher::next_time_out() const {
  std::optional<Instant> next;
  for (const Level& level : levels_) {
    if (!level.deadlines.empty()) {
      const Instant first = *level.deadlines.begin();
      next = next ? std::min(*next, first) : first;
    }
  }
  return next;
}

std::optional<Instant> Batcher::next_deadline() const {
  const std::optional<Instant> time_out = next_time_out();
  const Front front = look_at_front();
  if (front.count == 0) {
    return time_out;
  }
  const bool ready = front.preferred > 0 || !front.can_grow;
  const Instant due = ready ? front.oldest : front.oldest + max_queue_delay_;
  return time_out ? std::min(*time_out, due) : due;
}

}  // namespace septet::serve
