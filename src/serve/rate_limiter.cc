#include "serve/rate_limiter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace septet::serve {

using inference::RateResource;

Result<RatePool> parse_rate_pool(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return make_error(ErrorKind::kUsage, fmt::format("'{}' is no resource: {}", text, why),
                      "write NAME:COUNT, NAME:COUNT:DEVICE or NAME:COUNT:global");
  };
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3 || parts[0].empty()) {
    return bad("it has not two or three parts");
  }
  RatePool pool{.name = std::string(parts[0])};
  const auto count = parse_uint(parts[1]);
  if (!count || *count == 0 || *count > UINT32_MAX) {
    return bad("the count is no number from 1");
  }
  pool.count = static_cast<std::uint32_t>(*count);
  if (parts.size() == 3 && parts[2] == "global") {
    pool.scope = RatePool::Scope::kGlobal;
  } else if (parts.size() == 3) {
    const auto device = parse_uint(parts[2]);
    if (!device || *device > INT32_MAX) {
      return bad("the device is neither a number nor 'global'");
    }
    pool.scope = RatePool::Scope::kDevice;
    pool.device = static_cast<int>(*device);
  }
  return pool;
}

std::vector<RateClaim> rate_claims(const inference::ModelConfig& config) {
  std::vector<RateClaim> claims;
  for (const inference::InstanceGroup& group : config.instance_groups) {
    for (int i = 0; i < group.count; ++i) {
      const std::size_t gpus = group.gpus.size();
      claims.push_back({.resources = group.resources,
                        .priority = group.rate_priority,
                        .device = gpus == 0 ? 0 : group.gpus[static_cast<std::size_t>(i) % gpus]});
    }
  }
  return claims;
}

const RatePool* RateLimiter::find_pool(const Key& key) const {
  const RatePool* found = nullptr;
  for (const RatePool& pool : pools_) {
    const bool fits =
        pool.scope == RatePool::Scope::kAny ||
        key.second == (pool.scope == RatePool::Scope::kGlobal ? kGlobalDevice : pool.device);
    // What is said of one place wins over what is said of every one.
    if (pool.name == key.first && fits &&
        (found == nullptr || found->scope == RatePool::Scope::kAny)) {
      found = &pool;
    }
  }
  return found;
}

std::uint32_t RateLimiter::pool_size(const Key& key) const {
  if (const RatePool* pool = find_pool(key)) {
    return pool->count;
  }
  std::uint32_t most = 0;
  for (const auto& [member, entry] : members_) {
    if (const auto need = entry.needs.find(key); need != entry.needs.end()) {
      most = std::max(most, need->second);
    }
  }
  return most;
}

Result<RateLimiter::Member> RateLimiter::add(RateClaim claim) {
  Entry entry{.weight = std::max<std::uint64_t>(claim.priority, 1), .turns = now_};
  for (const RateResource& resource : claim.resources) {
    if (resource.count == 0) {
      continue;
    }
    const Key key{resource.name, resource.global ? kGlobalDevice : claim.device};
    entry.needs[key] = std::max(entry.needs[key], resource.count);
    const auto is_other_kind = [&](const auto& need) {
      return need.first.first == resource.name &&
             (need.first.second == kGlobalDevice) != resource.global;
    };
    const bool mixed = std::any_of(entry.needs.begin(), entry.needs.end(), is_other_kind) ||
                       std::any_of(members_.begin(), members_.end(), [&](const auto& member) {
                         const auto& needs = member.second.needs;
                         return std::any_of(needs.begin(), needs.end(), is_other_kind);
                       });
    if (mixed) {
      return make_error(ErrorKind::kUsage,
                        fmt::format("resource '{}' is both global and a device's", resource.name),
                        "give it the same 'global' in every rate_limiter that names it");
    }
    const RatePool* pool = find_pool(key);
    if (pool != nullptr && pool->count < resource.count) {
      return make_error(
          ErrorKind::kUsage,
          fmt::format("an instance needs {} of resource '{}', of which there are {}",
                      resource.count, resource.name, pool->count),
          "raise it with --rate-limit-resource, or lower 'count' in the rate_limiter");
    }
  }
  const Member member = ++last_;
  members_.emplace(member, std::move(entry));
  return member;
}

void RateLimiter::remove(Member member) {
  const auto found = members_.find(member);
  CHECK(found != members_.end() && found->second.state != State::kRunning);
  waiting_.erase({found->second.turns, member});
  members_.erase(found);
}

void RateLimiter::request(Member member) {
  Entry& entry = members_.at(member);
  CHECK(entry.state == State::kIdle);
  // Those that wait have at least this many turns, so nobody is passed for long by one who was
  // away.
  entry.turns = std::max(entry.turns, now_);
  entry.state = State::kWaiting;
  waiting_.insert({entry.turns, member});
}

void RateLimiter::withdraw(Member member) {
  Entry& entry = members_.at(member);
  CHECK(entry.state == State::kRunning);
  release(member);
  entry.turns -= entry.weight;
}

bool RateLimiter::is_free(const Entry& entry) const {
  return std::all_of(entry.needs.begin(), entry.needs.end(), [&](const auto& need) {
    const auto used = used_.find(need.first);
    return need.second + (used == used_.end() ? 0 : used->second) <= pool_size(need.first);
  });
}

std::vector<RateLimiter::Member> RateLimiter::take_granted() {
  std::vector<Member> granted;
  std::set<Key> awaited;  // by those that stay behind
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto [turns, member] = *next;
    Entry& entry = members_.at(member);
    const bool passes = std::any_of(entry.needs.begin(), entry.needs.end(),
                                    [&](const auto& need) { return awaited.contains(need.first); });
    if (passes || !is_free(entry)) {
      for (const auto& [key, count] : entry.needs) {
        awaited.insert(key);
      }
      ++next;
      continue;
    }
    for (const auto& [key, count] : entry.needs) {
      used_[key] += count;
    }
    entry.state = State::kRunning;
    now_ = std::max(now_, entry.turns);
    entry.turns += entry.weight;
    next = waiting_.erase(next);
    granted.push_back(member);
  }
  return granted;
}

void RateLimiter::release(Member member) {
  Entry& entry = members_.at(member);
  CHECK(entry.state == State::kRunning);
  for (const auto& [key, count] : entry.needs) {
    const auto used = used_.find(key);
    CHECK(used != used_.end() && used->second >= count);
    used->second -= count;
    if (used->second == 0) {
      used_.erase(used);
    }
  }
  entry.state = State::kIdle;
}

std::uint32_t RateLimiter::in_use(const std::string& resource, int device) const {
  const auto used = used_.find({resource, device});
  return used == used_.end() ? 0 : used->second;
}

std::uint32_t RateLimiter::pool_of(const std::string& resource, int device) const {
  return pool_size({resource, device});
}

}  // namespace septet::serve
