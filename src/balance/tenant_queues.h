// TenantQueues: the waiting requests of one model, fair between tenants.
//
// Owned by Dispatcher. Within a tenant the most urgent leaves first (DeadlineQueue). Between
// tenants the higher priority goes first; at equal priority the tenant that was served least lately
// (start- time fair queueing, each request one unit), so one that floods does not starve the
// others, and one that was silent saves up no claim. With one tenant this is its DeadlineQueue.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "balance/deadline_queue.h"

namespace septet::balance {

class TenantQueues {
 public:
  static constexpr std::uint32_t kMaxTenants = 64;

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  // The entry that pop() takes next.
  const DeadlineQueue::Entry& head() const { return tenants_[next_tenant()].queue.head(); }
  void push(std::uint32_t tenant, const DeadlineQueue::Entry& entry);
  DeadlineQueue::Entry pop();
  bool erase(std::uint32_t tenant, std::uint32_t ticket);
  // A waiting entry whose deadline has passed, wherever it stands.
  std::optional<DeadlineQueue::Entry> take_late(Instant now);

 private:
  struct Tenant {
    DeadlineQueue queue;
    std::uint64_t served = 0;  // virtual time: requests of its own, or where the others were
  };
  std::uint32_t next_tenant() const;

  std::array<Tenant, kMaxTenants> tenants_;
  std::uint64_t backlogged_ = 0;  // a bit per tenant with something waiting
  std::uint64_t virtual_time_ = 0;
  std::size_t size_ = 0;
};

}  // namespace septet::balance
