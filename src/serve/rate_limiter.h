// RateLimiter: which instance of which model may run next, when they share resources. A state
// machine without clock or threads.
//
// Owned by the server, called under its gate's lock. The rules are those of Triton's rate limiter
// (inference protocol, section 7):
//
//   add --> idle --request--> waiting --take_granted--> running --release--> idle --remove-->
//
// - An instance runs only while all its resources are free. A resource belongs to a device, or is
//   global: one pool for all. A pool holds what --rate-limit-resource says, else the most that one
//   instance asks for.
// - Of those that wait, the one with the fewest executions, weighted by its priority, goes first:
// an
//   instance of priority n gets 1/n of the turns of one of priority 1. Who was away has saved up
//   nothing.
// - Nobody passes a waiting instance that needs one of the same resources, so all get their turn;
//   instances that share nothing do not wait for each other.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "inference/model_config.h"

namespace septet::serve {

// What --rate-limit-resource says: how much there is of a resource.
struct RatePool {
  std::string name{};
  std::uint32_t count = 0;
  enum class Scope { kAny, kDevice, kGlobal };
  Scope scope = Scope::kAny;  // each device's, or the global one's
  int device = 0;             // with kDevice
};

// NAME:COUNT[:DEVICE], where DEVICE is a number or "global". kUsage says what is wrong.
Result<RatePool> parse_rate_pool(std::string_view text);

// One instance as the limiter sees it.
struct RateClaim {
  std::vector<inference::RateResource> resources{};
  std::uint32_t priority = 0;  // 0 counts as 1
  int device = 0;
};

// What a model's instances claim, in the order of the instances.
std::vector<RateClaim> rate_claims(const inference::ModelConfig& config);

class RateLimiter {
 public:
  using Member = std::uint64_t;

  explicit RateLimiter(std::vector<RatePool> pools) : pools_(std::move(pools)) {}

  // kUsage when the instance asks for more than there can be, or for a name that is both global and
  // a device's.
  Result<Member> add(RateClaim claim);
  // An idle or waiting member; what others wait for may become free.
  void remove(Member member);

  // The member has work. Once, until it was granted and released.
  void request(Member member);
  // It has none after all: another of the model's instances took it. It loses no turn.
  void withdraw(Member member);
  // Those that may run now, each until it is released.
  std::vector<Member> take_granted();
  void release(Member member);

  // For tests of what must always hold.
  std::uint32_t in_use(const std::string& resource, int device) const;
  std::uint32_t pool_of(const std::string& resource, int device) const;

 private:
  // A pool: the resource and its device; kGlobalDevice for a global one.
  using Key = std::pair<std::string, int>;
  static constexpr int kGlobalDevice = -1;

  enum class State { kIdle, kWaiting, kRunning };
  struct Entry {
    std::map<Key, std::uint32_t> needs{};
    std::uint64_t weight = 1;
    std::uint64_t turns = 0;  // weighted
    State state = State::kIdle;
  };

  std::uint32_t pool_size(const Key& key) const;
  const RatePool* find_pool(const Key& key) const;
  bool is_free(const Entry& entry) const;

  std::vector<RatePool> pools_;
  std::map<Member, Entry> members_;
  std::set<std::pair<std::uint64_t, Member>> waiting_;  // by weighted turns
  std::map<Key, std::uint32_t> used_;
  std::uint64_t now_ = 0;  // the weighted turns of whoever was granted last
  Member last_ = 0;
};

}  // namespace septet::serve
