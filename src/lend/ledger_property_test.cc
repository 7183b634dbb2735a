// Random histories of a ledger, from seeds: whatever users, processes, crashes and the clock do, no
// partition is lent twice, no quota is exceeded, and nobody waits longer than the rule allows.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/prng.h"
#include "support/ledger_driver.h"

namespace septet::lend {
namespace {

using testing::LedgerDriver;

constexpr Duration kMinute = std::chrono::minutes(1);
constexpr Duration kLongestTime = std::chrono::hours(2);

Policy team_policy() {
  Policy policy;
  policy.every_user.leases = 4;
  policy.every_user.share_permille = 900;
  policy.users["user1003"].memory_mib = 12000;
  policy.groups["vision"].share_permille = 1200;
  policy.may_change_layout = false;
  return policy;
}

std::vector<Partition> two_gpus_and_a_whole() {
  std::vector<Partition> partitions = testing::seven_slices(0);
  Partition large = partitions[6];
  large.id = PartitionId("MIG-large");
  large.profile = "3g.20gb";
  large.memory_mib = 19968;
  large.share_permille = 428;
  partitions.push_back(large);
  partitions.push_back(testing::whole_gpu(1));
  return partitions;
}

class History {
 public:
  explicit History(std::uint64_t seed) : prng_(seed), driver_(team_policy()) {
    driver_.observe(two_gpus_and_a_whole());
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      act();
      check();
    }
  }

  // Users stop asking: everything has to come to rest.
  void settle() {
    driver_.pass(std::chrono::hours(24 * 4));
    check();
    EXPECT_TRUE(driver_.ledger().leases().empty())
        << driver_.ledger().leases().size() << " leases never ended";
  }

 private:
  LeaseRequest random_request() {
    static constexpr std::array kSlices = {"1g.5gb",         "1g.5gb", "1g.5gb:2",    "3g.20gb",
                                           ">=10GB",         "gpu",    "mps:40%,4GB", "mps:50%,9GB",
                                           "time-slice:8GB", "1g",     "1g.5gb:4"};
    LeaseRequest wanted = LedgerDriver::request(1000 + static_cast<unsigned>(prng_.below(6)),
                                                kSlices[prng_.below(kSlices.size())]);
    if (wanted.owner.uid.value() % 2 == 0) {
      wanted.owner.groups = {"vision"};
    }
    wanted.time = kMinute * static_cast<std::int64_t>(1 + prng_.below(120));
    wanted.priority = static_cast<Priority>(prng_.below(3));
    wanted.is_preemptible = prng_.chance(.3);
    wanted.when_busy = prng_.chance(.8) ? WhenBusy::kQueue : WhenBusy::kRefuse;
    wanted.idle_after = prng_.chance(.3) ? 10 * kMinute : Duration::zero();
    return wanted;
  }

  std::optional<LeaseId> random_lease() {
    const auto& leases = driver_.ledger().leases();
    if (leases.empty()) {
      return std::nullopt;
    }
    auto at = leases.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(prng_.below(leases.size())));
    return at->first;
  }

  void act() {
    const std::uint64_t choice = prng_.below(20);
    if (choice < 6) {
      const LeaseId id = driver_.ask(random_request());
      if (prng_.chance(.2)) {
        driver_.make_stubborn(id);
      }
      return;
    }
    if (choice < 12) {
      return driver_.pass(seconds(static_cast<std::int64_t>(prng_.below(1200))));
    }
    if (choice == 12) {
      return driver_.restart();
    }
    const std::optional<LeaseId> id = random_lease();
    if (!id) {
      return;
    }
    const unsigned owner = driver_.lease(*id).request.owner.uid.value();
    switch (choice) {
      case 13:
        return driver_.release(*id, owner);
      case 14:
        return driver_.release(*id, 1000 + static_cast<unsigned>(prng_.below(6)));
      case 15:
        return driver_.send(HolderLost{*id});
      case 16:
        return driver_.see(*id, Activity::kBusy);
      case 17:
        // Late and repeated answers are harmless.
        driver_.send(PreparationSucceeded{*id});
        return driver_.send(LayoutChangeEnded{*id, LayoutOutcome::kFailed, {}});
      default:
        return driver_.see(*id, Activity::kIdle);
    }
  }

  void check() {
    check_holdings();
    check_quotas();
    check_waiting();
  }

  // Counted here from the holdings alone, not with the ledger's own Occupancy.
  void check_holdings() {
    std::map<PartitionId, std::vector<const Holding*>> by_partition;
    for (const auto& [id, lease] : driver_.ledger().leases()) {
      for (const Holding& holding : lease.holdings) {
        by_partition[holding.partition].push_back(&holding);
      }
    }
    for (const auto& [partition, holdings] : by_partition) {
      unsigned percent = 0;
      std::int64_t memory_mib = 0;
      for (const Holding* holding : holdings) {
        ASSERT_EQ(holding->kind, holdings[0]->kind) << partition.value();
        percent += holding->percent;
        memory_mib += holding->memory_mib;
      }
      ASSERT_TRUE(holdings.size() == 1 || is_shared(holdings[0]->kind))
          << partition.value() << " is lent twice";
      ASSERT_LE(percent, 100U);
      ASSERT_LE(memory_mib, 40960);
    }
  }

  void check_quotas() {
    std::map<unsigned, unsigned> leases;
    std::map<unsigned, unsigned> share;
    unsigned vision = 0;
    std::int64_t memory_of_1003 = 0;
    for (const auto& [id, lease] : driver_.ledger().leases()) {
      if (lease.holdings.empty()) {
        continue;
      }
      const unsigned uid = lease.request.owner.uid.value();
      ++leases[uid];
      for (const Holding& holding : lease.holdings) {
        share[uid] += holding.share_permille;
        vision += uid % 2 == 0 ? holding.share_permille : 0;
        memory_of_1003 += uid == 1003 ? holding.memory_mib : 0;
      }
    }
    for (const auto& [uid, count] : leases) {
      if (uid != 1003) {  // who has a quota of their own
        ASSERT_LE(count, 4U);
        ASSERT_LE(share[uid], 900U);
      }
    }
    ASSERT_LE(vision, 1200U);
    ASSERT_LE(memory_of_1003, 12000);
  }

  // Once a request starves, only older starving requests may be served before it on what it needs,
  // each for at most the longest time and the graces; waiting for a quota does not count.
  void check_waiting() {
    const Policy& policy = driver_.ledger().policy();
    const Duration one_turn =
        kLongestTime + policy.kill_grace + policy.kill_again_after + policy.kill_again_after;
    const Instant now = driver_.now();
    std::size_t older = 0;
    std::vector<const Lease*> waiting;
    for (const auto& [id, lease] : driver_.ledger().leases()) {
      if (lease.state == LeaseState::kQueued) {
        waiting.push_back(&lease);
      }
    }
    std::sort(waiting.begin(), waiting.end(), [](const Lease* a, const Lease* b) {
      return std::pair(a->requested, a->id) < std::pair(b->requested, b->id);
    });
    for (const Lease* lease : waiting) {
      Instant& since = able_since_.try_emplace(lease->id, lease->requested).first->second;
      if (driver_.ledger().waits_for_quota(lease->id)) {
        since = now;
        continue;
      }
      std::size_t& most = older_at_most_.try_emplace(lease->id, 0).first->second;
      most = std::max(most, older);
      const auto turns = static_cast<std::int64_t>(most + 1);
      ASSERT_LE((now - since).count(), (policy.starving_after + turns * one_turn).count())
          << "lease " << lease->id.value() << " starves behind " << most;
      ++older;
    }
  }

  Prng prng_;
  LedgerDriver driver_;
  std::map<LeaseId, Instant> able_since_;
  std::map<LeaseId, std::size_t> older_at_most_;
};

TEST(LedgerProperty, HoldsInRandomHistories) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("reproduce with seed=" + std::to_string(seed));
    History history(seed);

    history.run(250);
    history.settle();

    if (::testing::Test::HasFailure()) {
      return;
    }
  }
}

// Small requests never stop coming; a large one needs several partitions at the same moment.
TEST(LedgerProperty, ALargeRequestIsNotStarvedByAStreamOfSmallOnes) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("reproduce with seed=" + std::to_string(seed));
    Prng prng(seed);
    Policy policy;
    policy.may_change_layout = false;
    LedgerDriver driver(policy);
    driver.observe(testing::seven_slices());
    const auto ask_small = [&] {
      LeaseRequest small =
          LedgerDriver::queued(LedgerDriver::request(1000 + unsigned(prng.below(50)), "1g.5gb"));
      small.time = kMinute * static_cast<std::int64_t>(10 + prng.below(110));
      small.priority = Priority::kHigh;
      driver.ask(small);
    };
    for (int i = 0; i < 7; ++i) {
      ask_small();
    }
    const LeaseId large = driver.ask(LedgerDriver::queued(LedgerDriver::request(7, "1g.5gb:5")));

    const Duration bound = policy.starving_after + 2 * kLongestTime;
    const Instant start = driver.now();
    while (driver.state(large) == "queued" && driver.now() - start < bound) {
      driver.pass(kMinute);
      if (prng.chance(.4)) {
        ask_small();
      }
    }

    EXPECT_NE(driver.state(large), "queued")
        << "still waits after " << to_seconds(driver.now() - start) << " s";
  }
}

}  // namespace
}  // namespace septet::lend
