// DeadlineQueue: the requests of one model that wait for a replica, most urgent first.
//
// Owned by Dispatcher. A binary heap over memory that is kept, so it does not allocate after
// warm-up; push, pop and erase are O(log n). Order: priority (lower number first), then deadline,
// then arrival; so equal deadlines leave in the order in which they came.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"

namespace septet::balance {

class DeadlineQueue {
 public:
  struct Entry {
    std::uint32_t priority = 0;
    Instant deadline{};
    std::uint64_t sequence = 0;  // order of arrival
    std::uint32_t ticket = 0;    // names the request; the key of erase()
  };

  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  const Entry& head() const { return heap_.front(); }

  void push(const Entry& entry);
  Entry pop();
  // Whether the ticket was waiting here; it no longer is.
  bool erase(std::uint32_t ticket);
  // Some entry whose deadline has passed; looks at all of them.
  std::optional<Entry> find_late(Instant now) const;

 private:
  static bool before(const Entry& a, const Entry& b);
  void place(std::size_t index, const Entry& entry);
  void rise(std::size_t index, const Entry& entry);
  void sink(std::size_t index, const Entry& entry);
  void remove_at(std::size_t index);

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> position_;  // by ticket: index in heap_ + 1, or 0
};

}  // namespace septet::balance
