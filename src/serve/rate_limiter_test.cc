#include "serve/rate_limiter.h"

#include <gmock/gmock.h>

#include "base/prng.h"

namespace septet::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RateClaim claim(std::uint32_t count, std::uint32_t priority = 0, int device = 0) {
  return {.resources = {{.name = "R", .count = count}}, .priority = priority, .device = device};
}

TEST(RateLimiter, LetsThoseRunWhoseResourcesAreFree) {
  RateLimiter limiter({{.name = "R", .count = 4}});
  const auto three = limiter.add(claim(3)).value();
  const auto two = limiter.add(claim(2)).value();
  const auto elsewhere = limiter.add(claim(4, 0, 1)).value();
  const auto free = limiter.add({}).value();
  for (const auto member : {three, two, elsewhere, free}) {
    limiter.request(member);
  }

  EXPECT_THAT(limiter.take_granted(), ElementsAre(three, elsewhere, free));
  EXPECT_EQ(limiter.in_use("R", 0), 3U);
  limiter.release(elsewhere);
  EXPECT_THAT(limiter.take_granted(), IsEmpty());
  limiter.release(three);
  EXPECT_THAT(limiter.take_granted(), ElementsAre(two));
}

TEST(RateLimiter, MakesAPoolAsLargeAsTheLargestClaim) {
  RateLimiter limiter({});
  const auto small = limiter.add(claim(2)).value();
  const auto large = limiter.add(claim(5)).value();

  EXPECT_EQ(limiter.pool_of("R", 0), 5U);
  limiter.remove(large);
  EXPECT_EQ(limiter.pool_of("R", 0), 2U);
  limiter.request(small);
  EXPECT_THAT(limiter.take_granted(), ElementsAre(small));
}

TEST(RateLimiter, AGlobalResourceIsOnePoolForAllDevices) {
  RateLimiter limiter({{.name = "G", .count = 1, .scope = RatePool::Scope::kGlobal}});
  RateClaim here{.resources = {{.name = "G", .global = true, .count = 1}}};
  RateClaim there = here;
  there.device = 1;
  const auto first = limiter.add(here).value();
  const auto second = limiter.add(there).value();
  limiter.request(first);
  limiter.request(second);

  EXPECT_THAT(limiter.take_granted(), ElementsAre(first));
  limiter.release(first);
  EXPECT_THAT(limiter.take_granted(), ElementsAre(second));
}

TEST(RateLimiter, NobodyPassesAWaitingInstanceThatNeedsTheSame) {
  RateLimiter limiter({{.name = "R", .count = 4}});
  const auto running = limiter.add(claim(2)).value();
  const auto large = limiter.add(claim(4)).value();
  const auto small = limiter.add(claim(1)).value();
  limiter.request(running);
  EXPECT_THAT(limiter.take_granted(), ElementsAre(running));
  limiter.request(large);
  limiter.request(small);

  EXPECT_THAT(limiter.take_granted(), IsEmpty());
  limiter.release(running);
  EXPECT_THAT(limiter.take_granted(), ElementsAre(large));
  limiter.release(large);
  EXPECT_THAT(limiter.take_granted(), ElementsAre(small));
}

TEST(RateLimiter, RefusesWhatCanNeverRun) {
  RateLimiter limiter({{.name = "R", .count = 4, .scope = RatePool::Scope::kDevice, .device = 1},
                       {.name = "R", .count = 9}});

  EXPECT_TRUE(limiter.add(claim(9)).ok());
  EXPECT_THAT(limiter.add(claim(5, 0, 1)).error().text(),
              HasSubstr("needs 5 of resource 'R', of which there are 4"));
  EXPECT_THAT(
      limiter.add({.resources = {{.name = "R", .global = true, .count = 1}}}).error().text(),
      HasSubstr("both global and a device's"));
}

TEST(RateLimiter, WithdrawingCostsNoTurn) {
  RateLimiter limiter({});
  const auto first = limiter.add(claim(1)).value();
  const auto second = limiter.add(claim(1)).value();
  limiter.request(first);
  EXPECT_THAT(limiter.take_granted(), ElementsAre(first));
  limiter.withdraw(first);
  limiter.request(first);
  limiter.request(second);

  EXPECT_THAT(limiter.take_granted(), ElementsAre(first));
}

TEST(ParseRatePool, ReadsTritonsForm) {
  EXPECT_EQ(parse_rate_pool("R1:4")->count, 4U);
  EXPECT_EQ(parse_rate_pool("R1:4:2")->device, 2);
  EXPECT_EQ(parse_rate_pool("R1:4:global")->scope, RatePool::Scope::kGlobal);
  for (const char* bad : {"", "R", "R:", ":3", "R:0", "R:-1", "R:1:x", "R:1:2:3", "R:4294967296"}) {
    EXPECT_FALSE(parse_rate_pool(bad).ok()) << bad;
  }
}

// Turns of members that always have work, on one resource that admits one at a time.
std::vector<int> turns_of(const std::vector<std::uint32_t>& priorities, int rounds) {
  RateLimiter limiter({});
  std::vector<RateLimiter::Member> members;
  for (const std::uint32_t priority : priorities) {
    members.push_back(limiter.add(claim(1, priority)).value());
    limiter.request(members.back());
  }
  std::vector<int> turns(members.size());
  for (int i = 0; i < rounds; ++i) {
    const auto granted = limiter.take_granted();
    EXPECT_EQ(granted.size(), 1U);
    ++turns[static_cast<std::size_t>(granted[0] - members[0])];
    limiter.release(granted[0]);
    limiter.request(granted[0]);
  }
  return turns;
}

TEST(RateLimiter, PriorityNGetsOneNthOfTheTurns) {
  EXPECT_THAT(turns_of({1, 2}, 300), ElementsAre(200, 100));
  EXPECT_THAT(turns_of({0, 1, 4}, 90), ElementsAre(40, 40, 10));
}

TEST(RateLimiter, WhoWasAwayHasSavedUpNoTurns) {
  RateLimiter limiter({});
  const auto busy = limiter.add(claim(1)).value();
  const auto late = limiter.add(claim(1)).value();
  for (int i = 0; i < 100; ++i) {
    limiter.request(busy);
    limiter.take_granted();
    limiter.release(busy);
  }
  int turns_of_late = 0;
  limiter.request(busy);
  limiter.request(late);
  for (int i = 0; i < 20; ++i) {
    const auto granted = limiter.take_granted();
    turns_of_late += granted[0] == late ? 1 : 0;
    limiter.release(granted[0]);
    limiter.request(granted[0]);
  }

  EXPECT_THAT(turns_of_late, ::testing::AllOf(::testing::Ge(9), ::testing::Le(11)));
}

// Instances of any claims that come, run, withdraw and go in any order. Invariants:
//  1. what is used never exceeds the pool that was told;
//  2. whoever waits is granted after a bounded number of grants to others that need the same.
void simulate(std::uint64_t seed) {
  SCOPED_TRACE("reproduce with seed=" + std::to_string(seed));
  Prng prng(seed);
  RateLimiter limiter({{.name = "A", .count = 5}, {.name = "B", .count = 3}});
  struct Instance {
    RateLimiter::Member member = 0;
    bool running = false;
    int waited = 0;  // grants to others that need the same, since it asked; -1 = does not wait
    RateClaim claim{};
    bool shares_with(const Instance& other) const {
      const auto both_need = [&](std::size_t i) {
        return claim.resources[i].count > 0 && other.claim.resources[i].count > 0;
      };
      return claim.device == other.claim.device && (both_need(0) || both_need(1));
    }
  };
  std::vector<Instance> instances;
  const int count = 2 + static_cast<int>(prng.below(6));
  for (int i = 0; i < count; ++i) {
    RateClaim some{.priority = static_cast<std::uint32_t>(prng.below(4)),
                   .device = static_cast<int>(prng.below(2))};
    some.resources.push_back({.name = "A", .count = static_cast<std::uint32_t>(prng.below(6))});
    some.resources.push_back({.name = "B", .count = static_cast<std::uint32_t>(prng.below(4))});
    instances.push_back({limiter.add(some).value(), false, -1, some});
  }
  // Each of the others has at most its share of turns before it: weights are 1 to 3.
  const int longest = 8 * count;
  for (int step = 0; step < 400; ++step) {
    Instance& some = instances[prng.below(instances.size())];
    if (some.running) {
      prng.below(8) == 0 ? limiter.withdraw(some.member) : limiter.release(some.member);
      some.running = false;
    } else if (some.waited < 0) {
      limiter.request(some.member);
      some.waited = 0;
    }
    for (const auto member : limiter.take_granted()) {
      Instance& granted = instances[member - instances[0].member];
      ASSERT_GE(granted.waited, 0);
      granted.waited = -1;
      granted.running = true;
      for (Instance& other : instances) {
        if (other.waited >= 0 && other.shares_with(granted)) {
          ASSERT_LE(++other.waited, longest);
        }
      }
    }
    for (const int device : {0, 1}) {
      ASSERT_LE(limiter.in_use("A", device), 5U);
      ASSERT_LE(limiter.in_use("B", device), 3U);
    }
  }
  // Without new requests everything comes to rest, with nothing in use.
  for (bool any = true; any;) {
    any = false;
    for (Instance& instance : instances) {
      if (instance.running) {
        limiter.release(instance.member);
        instance.running = false;
        any = true;
      }
    }
    for (const auto member : limiter.take_granted()) {
      Instance& granted = instances[member - instances[0].member];
      granted.running = true;
      granted.waited = -1;
      any = true;
    }
  }
  for (const Instance& instance : instances) {
    ASSERT_EQ(instance.waited, -1);
  }
  ASSERT_EQ(limiter.in_use("A", 0) + limiter.in_use("A", 1), 0U);
}

TEST(RateLimiter, HoldsItsPoolsAndStarvesNobody) {
  for (std::uint64_t seed = 1; seed <= 300 && !::testing::Test::HasFatalFailure(); ++seed) {
    simulate(seed);
  }
}

}  // namespace
}  // namespace septet::serve
