#include "balance/deadline_queue.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace septet::balance {

bool DeadlineQueue::before(const Entry& a, const Entry& b) {
  return std::tie(a.priority, a.deadline, a.sequence) <
         std::tie(b.priority, b.deadline, b.sequence);
}

void DeadlineQueue::push(const Entry& entry) {
  if (entry.ticket >= position_.size()) {
    position_.resize(entry.ticket + 1U);
  }
  CHECK(position_[entry.ticket] == 0);
  heap_.push_back(entry);
  rise(heap_.size() - 1, entry);
}

DeadlineQueue::Entry DeadlineQueue::pop() {
  CHECK(!heap_.empty());
  const Entry first = heap_.front();
  remove_at(0);
  return first;
}

bool DeadlineQueue::erase(std::uint32_t ticket) {
  if (ticket >= position_.size() || position_[ticket] == 0) {
    return false;
  }
  remove_at(position_[ticket] - 1U);
  return true;
}

std::optional<DeadlineQueue::Entry> DeadlineQueue::find_late(Instant now) const {
  const auto late = std::find_if(heap_.begin(), heap_.end(),
                                 [now](const Entry& entry) { return entry.deadline <= now; });
  return late == heap_.end() ? std::nullopt : std::optional<Entry>(*late);
}

void DeadlineQueue::remove_at(std::size_t index) {
  position_[heap_[index].ticket] = 0;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (index == heap_.size()) {
    return;
  }
  if (index > 0 && before(last, heap_[(index - 1) / 2])) {
    rise(index, last);
  } else {
    sink(index, last);
  }
}

void DeadlineQueue::place(std::size_t index, const Entry& entry) {
  heap_[index] = entry;
  position_[entry.ticket] = static_cast<std::uint32_t>(index) + 1U;
}

void DeadlineQueue::rise(std::size_t index, const Entry& entry) {
  const Entry moving = entry;
  while (index > 0) {
    const std::size_t parent = (index - 1) / 2;
    if (!before(moving, heap_[parent])) {
      break;
    }
    place(index, heap_[parent]);
    index = parent;
  }
  place(index, moving);
}

void DeadlineQueue::sink(std::size_t index, const Entry& entry) {
  const Entry moving = entry;
  for (;;) {
    std::size_t child = 2 * index + 1;
    if (child >= heap_.size()) {
      break;
    }
    if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) {
      ++child;
    }
    if (!before(heap_[child], moving)) {
      break;
    }
    place(index, heap_[child]);
    index = child;
  }
  place(index, moving);
}

}  // namespace septet::balance
