#include "balance/tenant_queues.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/check.h"

namespace septet::balance {

std::uint32_t TenantQueues::next_tenant() const {
  CHECK(backlogged_ != 0);
  auto best = static_cast<std::uint32_t>(std::countr_zero(backlogged_));
  for (std::uint64_t left = backlogged_ & (backlogged_ - 1); left != 0; left &= left - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(left));
    const Tenant& a = tenants_[index];
    const Tenant& b = tenants_[best];
    if (std::tie(a.queue.head().priority, a.served, a.queue.head().deadline) <
        std::tie(b.queue.head().priority, b.served, b.queue.head().deadline)) {
      best = index;
    }
  }
  return best;
}

void TenantQueues::push(std::uint32_t tenant, const DeadlineQueue::Entry& entry) {
  CHECK(tenant < kMaxTenants);
  Tenant& own = tenants_[tenant];
  if (own.queue.empty()) {
    own.served = std::max(own.served, virtual_time_);
    backlogged_ |= std::uint64_t{1} << tenant;
  }
  own.queue.push(entry);
  ++size_;
}

DeadlineQueue::Entry TenantQueues::pop() {
  const std::uint32_t index = next_tenant();
  Tenant& own = tenants_[index];
  virtual_time_ = own.served++;
  const DeadlineQueue::Entry entry = own.queue.pop();
  if (own.queue.empty()) {
    backlogged_ &= ~(std::uint64_t{1} << index);
  }
  --size_;
  return entry;
}

bool TenantQueues::erase(std::uint32_t tenant, std::uint32_t ticket) {
  if (!tenants_[tenant].queue.erase(ticket)) {
    return false;
  }
  if (tenants_[tenant].queue.empty()) {
    backlogged_ &= ~(std::uint64_t{1} << tenant);
  }
  --size_;
  return true;
}

std::optional<DeadlineQueue::Entry> TenantQueues::take_late(Instant now) {
  for (std::uint64_t left = backlogged_; left != 0; left &= left - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(left));
    const std::optional<DeadlineQueue::Entry> late = tenants_[index].queue.find_late(now);
    if (late) {
      CHECK(erase(index, late->ticket));
      return late;
    }
  }
  return std::nullopt;
}

}  // namespace septet::balance
