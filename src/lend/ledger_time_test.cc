// What time drives: expiry, idleness, grace, the priority gate.
#include <gtest/gtest.h>

#include "lend/ledger.h"
#include "support/ledger_driver.h"

namespace septet::lend {
namespace {

using testing::LedgerDriver;
using testing::seven_slices;
using testing::whole_gpu;

constexpr auto request = &LedgerDriver::request;
constexpr auto queued = &LedgerDriver::queued;
constexpr auto with_priority = &LedgerDriver::with_priority;
constexpr Duration kMinute = std::chrono::minutes(1);
constexpr Duration kHour = std::chrono::hours(1);

TEST(LedgerTime, ExpiryIsWarnedThenAskedThenKilled) {
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

TEST(LedgerTime, RenewalMovesTheExpiryAndWithdrawsTheWarning) {
  LedgerDriver driver;
  driver.observe(seven_slices());
  const LeaseId id = driver.ask(request(1000, "1g.5gb"));
  driver.pass(56 * kMinute);
  ASSERT_EQ(driver.state(id), "warned");

  driver.send(RenewalRequested{id, UserId(1000), kHour, {}});
  driver.pass(30 * kMinute);

  EXPECT_EQ(driver.state(id), "active");
}

TEST(LedgerTime, OpenEndedLeaseGoesOnWhileNobodyWaits) {
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

TEST(LedgerTime, IdleIsWarnedThenReclaimed) {
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

TEST(LedgerTime, WorkWithdrawsTheIdleWarning) {
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

TEST(LedgerTime, AnOldObservationReclaimsNothing) {
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

TEST(LedgerTime, GivesUpWaitingWhenTold) {
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

TEST(LedgerTime, NoRenewalWhileOthersStarveForThePartition) {
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

TEST(LedgerTime, LowPriorityIsPausedWhileHighPriorityWorks) {
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

TEST(LedgerTime, APreparationThatIsNeverAnsweredFails) {
  LedgerDriver driver;
  driver.hold_preparations();
  driver.observe(seven_slices());
  const LeaseId id = driver.ask(request(1000, "1g.5gb"));
  ASSERT_EQ(driver.state(id), "preparing");

  driver.pass(2 * kMinute);

  EXPECT_EQ(driver.ended_for(id), EndReason::kFailed);
  EXPECT_TRUE(driver.refusal(id));
}

}  // namespace
}  // namespace septet::lend
