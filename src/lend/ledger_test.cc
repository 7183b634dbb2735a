#include "lend/ledger.h"

#include <gtest/gtest.h>

#include "support/ledger_driver.h"

namespace septet::lend {
namespace {

using testing::LedgerDriver;
using testing::seven_slices;
using testing::whole_gpu;

constexpr auto request = &LedgerDriver::request;
constexpr auto queued = &LedgerDriver::queued;
constexpr Duration kHour = std::chrono::hours(1);

TEST(Ledger, LendsAFreePartition) {
  LedgerDriver driver;
  driver.observe(seven_slices());

  const LeaseId id = driver.ask(request(1000, "1g.5gb"));

  EXPECT_EQ(driver.state(id), "active");
  EXPECT_EQ(driver.partition_of(id), "MIG-0-0");
  EXPECT_EQ(driver.saved().at(id), driver.lease(id));
}

TEST(Ledger, TheEighthWithoutQueueIsRefusedAndHoldsNothing) {
  LedgerDriver driver;
  driver.observe(seven_slices());
  for (int i = 0; i < 7; ++i) {
    driver.ask(request(1000, "1g.5gb"));
  }

  const LeaseId eighth = driver.ask(request(1001, "1g.5gb"));

  ASSERT_TRUE(driver.refusal(eighth));
  EXPECT_EQ(driver.refusal(eighth)->kind, ErrorKind::kNoCapacity);
  EXPECT_EQ(driver.state(eighth), "ended");
}

TEST(Ledger, AReleasedPartitionGoesToTheQueue) {
  LedgerDriver driver;
  driver.observe(seven_slices());
  std::vector<LeaseId> ids;
  for (int i = 0; i < 7; ++i) {
    ids.push_back(driver.ask(request(1000, "1g.5gb")));
  }
  const LeaseId waiting = driver.ask(queued(request(1001, "1g.5gb")));
  ASSERT_EQ(driver.state(waiting), "queued");

  driver.release(ids[3], 1000);

  EXPECT_EQ(driver.ended_for(ids[3]), EndReason::kReleased);
  EXPECT_EQ(driver.state(waiting), "active");
  EXPECT_EQ(driver.partition_of(waiting), "MIG-0-3");
}

TEST(Ledger, APartitionIsNotLentWhileTheOldProcessesStillRun) {
  LedgerDriver driver;
  driver.observe({seven_slices()[0]});
  const LeaseId first = driver.ask(request(1000, "1g.5gb"));
  driver.make_immortal(first);
  const LeaseId second = driver.ask(queued(request(1001, "1g.5gb")));

  driver.release(first, 1000);
  driver.pass(kHour);

  EXPECT_EQ(driver.state(first), "releasing");
  EXPECT_EQ(driver.state(second), "queued");
  driver.send(LeaseCleared{first});
  EXPECT_EQ(driver.state(second), "active");
}

TEST(Ledger, NobodyTouchesAnotherUsersLease) {
  LedgerDriver driver;
  driver.observe(seven_slices());
  const LeaseId id = driver.ask(request(1000, "1g.5gb"));

  driver.release(id, 1001);
  ASSERT_TRUE(driver.refusal(id));
  EXPECT_EQ(driver.refusal(id)->kind, ErrorKind::kPermission);
  driver.send(RenewalRequested{id, UserId(1001), kHour, {}});

  EXPECT_EQ(driver.state(id), "active");
  EXPECT_FALSE(driver.happened("renewed 1"));
}

TEST(Ledger, RootRevokes) {
  LedgerDriver driver;
  driver.observe(seven_slices());
  const LeaseId id = driver.ask(request(1000, "1g.5gb"));

  driver.release(id, 0);

  EXPECT_EQ(driver.ended_for(id), EndReason::kRevoked);
}

TEST(Ledger, ARenewalOfAnOldGenerationIsRefused) {
  LedgerDriver driver;
  driver.observe(seven_slices());
  const LeaseId id = driver.ask(request(1000, "1g.5gb"));
  const unsigned generation = driver.lease(id).generation;
  driver.send(RenewalRequested{id, UserId(1000), kHour, generation});

  driver.send(RenewalRequested{id, UserId(1000), kHour, generation});

  ASSERT_TRUE(driver.refusal(id));
  EXPECT_EQ(driver.refusal(id)->kind, ErrorKind::kPrecondition);
}

TEST(Ledger, AnEndedLeaseCanNeitherBeRenewedNorReleased) {
  LedgerDriver driver;
  driver.observe(seven_slices());
  const LeaseId id = driver.ask(request(1000, "1g.5gb"));
  driver.release(id, 1000);

  driver.send(RenewalRequested{id, UserId(1000), kHour, {}});

  EXPECT_EQ(driver.refusal(id)->kind, ErrorKind::kNotFound);
}

TEST(Ledger, QuotaOfAUserHolds) {
  Policy policy;
  policy.every_user.leases = 2;
  LedgerDriver driver(policy);
  driver.observe(seven_slices());
  driver.ask(request(1000, "1g.5gb"));
  const LeaseId second = driver.ask(request(1000, "1g.5gb"));

  const LeaseId third = driver.ask(request(1000, "1g.5gb"));
  const LeaseId waiting = driver.ask(queued(request(1000, "1g.5gb")));
  const LeaseId other = driver.ask(request(1001, "1g.5gb"));

  ASSERT_TRUE(driver.refusal(third));
  EXPECT_NE(driver.refusal(third)->message.find("quota"), std::string::npos)
      << driver.refusal(third)->message;
  EXPECT_EQ(driver.state(waiting), "queued");
  EXPECT_TRUE(driver.ledger().waits_for_quota(waiting));
  EXPECT_EQ(driver.state(other), "active");
  driver.release(second, 1000);
  EXPECT_EQ(driver.state(waiting), "active");
}

TEST(Ledger, QuotaOfAGroupCountsAllMembers) {
  Policy policy;
  policy.groups["vision"].share_permille = 300;
  LedgerDriver driver(policy);
  driver.observe(seven_slices());
  const auto member = [](unsigned uid) {
    LeaseRequest wanted = request(uid, "1g.5gb");
    wanted.owner.groups = {"vision"};
    return wanted;
  };
  driver.ask(member(1000));
  driver.ask(member(1001));

  const LeaseId third = driver.ask(member(1002));

  ASSERT_TRUE(driver.refusal(third));
  EXPECT_NE(driver.refusal(third)->message.find("group vision"), std::string::npos);
}

TEST(Ledger, ARequestThatIsAloneOverQuotaIsRefusedEvenWithQueue) {
  Policy policy;
  policy.every_user.share_permille = 500;
  LedgerDriver driver(policy);
  driver.observe({whole_gpu()});

  const LeaseId id = driver.ask(queued(request(1000, "gpu")));

  ASSERT_TRUE(driver.refusal(id));
  EXPECT_EQ(driver.refusal(id)->kind, ErrorKind::kNoCapacity);
}

TEST(Ledger, AnImpossibleSliceIsRefusedAtOnce) {
  LedgerDriver driver;
  driver.observe(seven_slices());

  const LeaseId id = driver.ask(queued(request(1000, "9g.90gb")));

  ASSERT_TRUE(driver.refusal(id));
  EXPECT_EQ(driver.refusal(id)->hint, "there is: 7 of 1g.5gb");
}

TEST(Ledger, MpsSharesAddUpToAtMostAll) {
  LedgerDriver driver;
  driver.observe({whole_gpu()});
  driver.ask(request(1000, "mps:50%,4GB"));
  driver.ask(request(1000, "mps:50%,4GB"));

  const LeaseId third = driver.ask(request(1000, "mps:10%,4GB"));

  EXPECT_TRUE(driver.refusal(third));
}

TEST(Ledger, AnMpsServerServesOneUserAtATime) {
  LedgerDriver driver;
  driver.observe({whole_gpu()});
  driver.ask(request(1000, "mps:25%"));

  const LeaseId other = driver.ask(request(1001, "mps:25%"));
  const LeaseId same = driver.ask(request(1000, "mps:25%"));

  EXPECT_TRUE(driver.refusal(other));
  EXPECT_EQ(driver.state(same), "active");
}

TEST(Ledger, KindsOfSharingDoNotMix) {
  LedgerDriver driver;
  driver.observe({whole_gpu()});
  driver.ask(request(1000, "mps:25%"));

  EXPECT_TRUE(driver.refusal(driver.ask(request(1000, "time-slice:4GB"))));
  EXPECT_TRUE(driver.refusal(driver.ask(request(1000, "gpu"))));
}

TEST(Ledger, ALostPartitionEndsItsLease) {
  LedgerDriver driver;
  driver.observe(seven_slices());
  const LeaseId id = driver.ask(request(1000, "1g.5gb"));

  driver.observe({seven_slices()[1]});

  EXPECT_EQ(driver.ended_for(id), EndReason::kPartitionLost);
}

TEST(Ledger, TheHolderThatVanishesGivesBack) {
  LedgerDriver driver;
  driver.observe(seven_slices());
  const LeaseId id = driver.ask(request(1000, "1g.5gb"));

  driver.send(HolderLost{id});

  EXPECT_EQ(driver.ended_for(id), EndReason::kHolderGone);
}

TEST(LedgerRestore, TakesOverWhatWasWritten) {
  LedgerDriver before;
  before.observe(seven_slices());
  const LeaseId active = before.ask(request(1000, "1g.5gb"));
  const LeaseId leaving = before.ask(request(1001, "1g.5gb"));
  before.make_immortal(leaving);
  before.release(leaving, 1001);
  std::vector<Lease> written;
  for (const auto& [id, lease] : before.saved()) {
    written.push_back(lease);
  }

  LedgerDriver after;
  after.ledger().restore(before.now(), written, LeaseId(3));
  after.observe(seven_slices());

  EXPECT_EQ(after.state(active), "active");
  EXPECT_EQ(after.partition_of(active), before.partition_of(active));
  EXPECT_TRUE(after.happened("ask 2 released"));
  EXPECT_EQ(after.state(leaving), "ended");
  EXPECT_EQ(after.ask(request(1002, "1g.5gb")), LeaseId(3));
}

}  // namespace
}  // namespace septet::lend
