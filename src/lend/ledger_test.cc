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
constexpr Duration kMinute = std::chrono::minutes(1);
constexpr Duration kHour = std::chrono::hours(1);

LeaseRequest with_priority(LeaseRequest wanted, Priority priority) {
  wanted.priority = priority;
  return wanted;
}

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

TEST(Ledger, ExpiryIsWarnedThenAskedThenKilled) {
  LedgerDriver driver;
  driver.observe(seven_slices());
  const LeaseId id = driver.ask(request(1000, "1g.5gb"));
  driver.make_stubborn(id);

  driver.pass(54 * kMinute);
  EXPECT_FALSE(driver.happened("warn 1 expired"));
  driver.pass(2 * kMinute);
  EXPECT_TRUE(driver.happened("warn 1 expired"));
  EXPECT_EQ(driver.state(id), "warned");
  driver.pass(4 * kMinute);
  EXPECT_EQ(driver.state(id), "releasing");
  EXPECT_FALSE(driver.happened("kill 1"));
  driver.pass(seconds(30));

  EXPECT_TRUE(driver.happened("kill 1"));
  EXPECT_EQ(driver.ended_for(id), EndReason::kExpired);
}

TEST(Ledger, RenewalMovesTheExpiryAndWithdrawsTheWarning) {
  LedgerDriver driver;
  driver.observe(seven_slices());
  const LeaseId id = driver.ask(request(1000, "1g.5gb"));
  driver.pass(56 * kMinute);
  ASSERT_EQ(driver.state(id), "warned");

  driver.send(RenewalRequested{id, UserId(1000), kHour, {}});
  driver.pass(30 * kMinute);

  EXPECT_EQ(driver.state(id), "active");
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

TEST(Ledger, OpenEndedLeaseGoesOnWhileNobodyWaits) {
  LedgerDriver driver;
  driver.observe({seven_slices()[0]});
  LeaseRequest wanted = request(1000, "1g.5gb");
  wanted.time.reset();
  const LeaseId id = driver.ask(wanted);

  driver.pass(100 * kHour);
  EXPECT_EQ(driver.state(id), "active");
  const LeaseId waiting = driver.ask(queued(request(1001, "1g.5gb")));
  driver.pass(9 * kHour);

  EXPECT_TRUE(driver.happened("warn 1 expired"));
  EXPECT_EQ(driver.ended_for(id), EndReason::kExpired);
  EXPECT_NE(driver.ended_for(waiting), EndReason::kGaveUp);
}

TEST(Ledger, IdleIsWarnedThenReclaimed) {
  LedgerDriver driver;
  driver.observe(seven_slices());
  LeaseRequest wanted = request(1000, "1g.5gb");
  wanted.idle_after = 10 * kMinute;
  const LeaseId id = driver.ask(wanted);

  driver.pass(10 * kMinute);
  driver.see(id, Activity::kIdle);
  EXPECT_TRUE(driver.happened("warn 1 idle"));
  driver.pass(4 * kMinute);
  driver.see(id, Activity::kIdle);
  EXPECT_EQ(driver.state(id), "warned");
  driver.pass(kMinute);
  driver.see(id, Activity::kIdle);

  EXPECT_EQ(driver.ended_for(id), EndReason::kIdle);
}

TEST(Ledger, WorkWithdrawsTheIdleWarning) {
  LedgerDriver driver;
  driver.observe(seven_slices());
  LeaseRequest wanted = request(1000, "1g.5gb");
  wanted.idle_after = 10 * kMinute;
  const LeaseId id = driver.ask(wanted);
  driver.pass(10 * kMinute);
  driver.see(id, Activity::kIdle);

  driver.see(id, Activity::kBusy);
  driver.pass(9 * kMinute);
  driver.see(id, Activity::kIdle);

  EXPECT_TRUE(driver.happened("unwarn 1"));
  EXPECT_EQ(driver.state(id), "active");
}

TEST(Ledger, AnOldObservationReclaimsNothing) {
  LedgerDriver driver;
  driver.observe(seven_slices());
  LeaseRequest wanted = request(1000, "1g.5gb");
  wanted.idle_after = 10 * kMinute;
  const LeaseId id = driver.ask(wanted);
  driver.pass(10 * kMinute);
  const Instant then = driver.now();
  driver.pass(kMinute);

  driver.send(ActivityObserved{id, then, Activity::kIdle});
  driver.see(id, Activity::kUnknown);

  EXPECT_EQ(driver.state(id), "active");
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

TEST(Ledger, GivesUpWaitingWhenTold) {
  LedgerDriver driver;
  driver.observe({seven_slices()[0]});
  driver.ask(request(1000, "1g.5gb"));
  LeaseRequest wanted = queued(request(1001, "1g.5gb"));
  wanted.longest_wait = 10 * kMinute;
  const LeaseId waiting = driver.ask(wanted);

  driver.pass(11 * kMinute);

  EXPECT_EQ(driver.ended_for(waiting), EndReason::kGaveUp);
  ASSERT_TRUE(driver.refusal(waiting));
}

TEST(Ledger, HighPriorityIsServedFirst) {
  LedgerDriver driver;
  driver.observe({seven_slices()[0]});
  const LeaseId holder = driver.ask(request(1000, "1g.5gb"));
  const LeaseId normal = driver.ask(queued(request(1001, "1g.5gb")));
  const LeaseId high = driver.ask(with_priority(queued(request(1002, "1g.5gb")), Priority::kHigh));

  driver.release(holder, 1000);

  EXPECT_EQ(driver.state(high), "active");
  EXPECT_EQ(driver.state(normal), "queued");
}

TEST(Ledger, WhoHoldsLessIsServedFirst) {
  LedgerDriver driver;
  driver.observe({seven_slices()[0], seven_slices()[1]});
  driver.ask(request(1000, "1g.5gb"));
  const LeaseId holder = driver.ask(request(1001, "1g.5gb"));
  const LeaseId more = driver.ask(queued(request(1000, "1g.5gb")));
  const LeaseId less = driver.ask(queued(request(1002, "1g.5gb")));

  driver.release(holder, 1001);

  EXPECT_EQ(driver.state(less), "active");
  EXPECT_EQ(driver.state(more), "queued");
}

TEST(Ledger, StarvingIsServedBeforeHighPriority) {
  LedgerDriver driver;
  driver.observe({seven_slices()[0]});
  LeaseRequest longer = request(1000, "1g.5gb");
  longer.time = 2 * kHour;
  const LeaseId holder = driver.ask(longer);
  const LeaseId low = driver.ask(with_priority(queued(request(1001, "1g.5gb")), Priority::kLow));
  driver.pass(31 * kMinute);
  const LeaseId high = driver.ask(with_priority(queued(request(1002, "1g.5gb")), Priority::kHigh));

  driver.release(holder, 1000);

  EXPECT_EQ(driver.state(low), "active");
  EXPECT_EQ(driver.state(high), "queued");
}

TEST(Ledger, NoRenewalWhileOthersStarveForThePartition) {
  LedgerDriver driver;
  driver.observe({seven_slices()[0]});
  const LeaseId holder = driver.ask(request(1000, "1g.5gb"));
  driver.ask(queued(request(1001, "1g.5gb")));
  driver.send(RenewalRequested{holder, UserId(1000), kHour, {}});
  ASSERT_TRUE(driver.happened("renewed 1"));
  driver.pass(31 * kMinute);

  driver.send(RenewalRequested{holder, UserId(1000), kHour, {}});

  ASSERT_TRUE(driver.refusal(holder));
  EXPECT_EQ(driver.refusal(holder)->kind, ErrorKind::kNoCapacity);
}

TEST(Ledger, BackFillNeverDelaysTheHead) {
  LedgerDriver driver;
  const auto slices = seven_slices();
  driver.observe({slices[0], slices[1], slices[2]});
  driver.ask(request(1000, "1g.5gb"));  // one hour
  const LeaseId head = driver.ask(queued(request(1001, "1g.5gb:3")));
  LeaseRequest brief = queued(request(1002, "1g.5gb"));
  brief.time = 10 * kMinute;
  LeaseRequest lengthy = queued(request(1003, "1g.5gb"));
  lengthy.time = 5 * kHour;

  const LeaseId short_one = driver.ask(brief);
  const LeaseId long_one = driver.ask(lengthy);
  EXPECT_EQ(driver.state(short_one), "active");
  EXPECT_EQ(driver.state(long_one), "queued");
  driver.pass(61 * kMinute);

  EXPECT_EQ(driver.state(head), "active");
}

TEST(Ledger, PreemptsOnlyWhatAgreedToIt) {
  LedgerDriver driver;
  driver.observe({seven_slices()[0], seven_slices()[1]});
  LeaseRequest low = with_priority(request(1000, "1g.5gb"), Priority::kLow);
  low.is_preemptible = true;
  const LeaseId firm = driver.ask(with_priority(request(1001, "1g.5gb"), Priority::kLow));
  const LeaseId yielding = driver.ask(low);

  const LeaseId high = driver.ask(with_priority(queued(request(1002, "1g.5gb")), Priority::kHigh));
  EXPECT_EQ(driver.state(yielding), "warned");
  driver.pass(6 * kMinute);

  EXPECT_EQ(driver.ended_for(yielding), EndReason::kPreempted);
  EXPECT_EQ(driver.state(firm), "active");
  EXPECT_EQ(driver.state(high), "active");
}

TEST(Ledger, TheWarningIsWithdrawnWhenTheUrgentRequestGoes) {
  LedgerDriver driver;
  driver.observe({seven_slices()[0]});
  LeaseRequest low = with_priority(request(1000, "1g.5gb"), Priority::kLow);
  low.is_preemptible = true;
  const LeaseId yielding = driver.ask(low);
  const LeaseId high = driver.ask(with_priority(queued(request(1002, "1g.5gb")), Priority::kHigh));

  driver.release(high, 1002);

  EXPECT_EQ(driver.state(yielding), "active");
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

TEST(Ledger, LowPriorityIsPausedWhileHighPriorityWorks) {
  LedgerDriver driver;
  driver.observe({whole_gpu()});
  const LeaseId low = driver.ask(with_priority(request(1000, "time-slice:4GB"), Priority::kLow));
  driver.pass(kMinute);
  const LeaseId high = driver.ask(with_priority(request(1001, "time-slice:4GB"), Priority::kHigh));

  driver.see(high, Activity::kBusy);
  EXPECT_TRUE(driver.lease(low).is_paused);
  driver.pass(seconds(3));

  EXPECT_FALSE(driver.lease(low).is_paused);
  EXPECT_TRUE(driver.happened("pause 1"));
  EXPECT_TRUE(driver.happened("resume 1"));
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

TEST(Ledger, APreparationThatIsNeverAnsweredFails) {
  LedgerDriver driver;
  driver.hold_preparations();
  driver.observe(seven_slices());
  const LeaseId id = driver.ask(request(1000, "1g.5gb"));
  ASSERT_EQ(driver.state(id), "preparing");

  driver.pass(2 * kMinute);

  EXPECT_EQ(driver.ended_for(id), EndReason::kFailed);
  EXPECT_TRUE(driver.refusal(id));
}

class LedgerLayout : public ::testing::Test {
 protected:
  LedgerLayout() {
    driver_.observe(seven_slices(), {{gpu::GpuUuid("GPU-0"), "1g.5gb", 4864, 7},
                                     {gpu::GpuUuid("GPU-0"), "3g.20gb", 19968, 2}});
  }

  Partition large() {
    Partition partition = seven_slices()[0];
    partition.id = PartitionId("MIG-large");
    partition.profile = "3g.20gb";
    partition.memory_mib = 19968;
    return partition;
  }

  LedgerDriver driver_;
};

TEST_F(LedgerLayout, OnlyIdlePartitionsAreOfferedForReLaying) {
  driver_.ask(request(1000, "1g.5gb"));

  const LeaseId id = driver_.ask(queued(request(1001, "3g.20gb")));

  ASSERT_TRUE(driver_.layout_wish());
  EXPECT_EQ(driver_.layout_wish()->id, id);
  EXPECT_EQ(driver_.layout_wish()->idle.size(), 6U);
}

TEST_F(LedgerLayout, NothingIsLentOnPartitionsBeingReLaid) {
  driver_.ask(queued(request(1001, "3g.20gb")));

  const LeaseId other = driver_.ask(queued(request(1002, "1g.5gb")));

  EXPECT_EQ(driver_.state(other), "queued");
}

TEST_F(LedgerLayout, TheNewPartitionGoesToWhoItWasMadeFor) {
  const LeaseId id = driver_.ask(queued(request(1001, "3g.20gb")));
  const auto slices = seven_slices();

  driver_.observe({large(), slices[4], slices[5], slices[6]});
  driver_.send(LayoutChangeEnded{id, LayoutOutcome::kDone, {}});

  EXPECT_EQ(driver_.state(id), "active");
  EXPECT_EQ(driver_.partition_of(id), "MIG-large");
}

TEST_F(LedgerLayout, AnAttemptThatCannotSucceedIsNotRepeatedUntilSomethingChanges) {
  const LeaseId holder = driver_.ask(request(1000, "1g.5gb"));
  const LeaseId id = driver_.ask(queued(request(1001, "3g.20gb")));
  driver_.forget_layout_wish();

  driver_.send(LayoutChangeEnded{id, LayoutOutcome::kImpossibleNow, {PartitionId("MIG-0-0")}});
  driver_.pass(kMinute);
  EXPECT_FALSE(driver_.layout_wish());
  driver_.release(holder, 1000);

  EXPECT_TRUE(driver_.layout_wish());
}

TEST_F(LedgerLayout, WhatTheHeadNeedsForReLayingIsKeptFree) {
  const LeaseId holder = driver_.ask(request(1000, "1g.5gb"));
  const LeaseId head = driver_.ask(queued(request(1001, "3g.20gb")));
  driver_.send(LayoutChangeEnded{
      head, LayoutOutcome::kImpossibleNow, {PartitionId("MIG-0-0"), PartitionId("MIG-0-1")}});
  LeaseRequest lengthy = queued(request(1002, "MIG-0-1"));
  lengthy.time = 5 * kHour;

  const LeaseId id = driver_.ask(lengthy);

  EXPECT_EQ(driver_.state(id), "queued");
  EXPECT_EQ(driver_.state(holder), "active");
}

TEST_F(LedgerLayout, WhoDoesNotWaitIsRefusedWhenReLayingFails) {
  const LeaseId id = driver_.ask(request(1001, "3g.20gb"));
  ASSERT_TRUE(driver_.layout_wish());

  driver_.send(LayoutChangeEnded{id, LayoutOutcome::kFailed, {}});

  EXPECT_TRUE(driver_.refusal(id));
  EXPECT_EQ(driver_.state(id), "ended");
  EXPECT_EQ(driver_.saved().at(id).state, LeaseState::kEnded);
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
