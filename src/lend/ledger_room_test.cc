// Who gets room first, and how room is made: order, back-fill, pre-emption, changes of layout.
#include <gtest/gtest.h>

#include "lend/ledger.h"
#include "support/ledger_driver.h"

namespace septet::lend {
namespace {

using testing::LedgerDriver;
using testing::seven_slices;

constexpr auto request = &LedgerDriver::request;
constexpr auto queued = &LedgerDriver::queued;
constexpr auto with_priority = &LedgerDriver::with_priority;
constexpr Duration kMinute = std::chrono::minutes(1);
constexpr Duration kHour = std::chrono::hours(1);

TEST(LedgerRoom, HighPriorityIsServedFirst) {
  LedgerDriver driver;
  driver.observe({seven_slices()[0]});
  const LeaseId holder = driver.ask(request(1000, "1g.5gb"));
  const LeaseId normal = driver.ask(queued(request(1001, "1g.5gb")));
  const LeaseId high = driver.ask(with_priority(queued(request(1002, "1g.5gb")), Priority::kHigh));

  driver.release(holder, 1000);

  EXPECT_EQ(driver.state(high), "active");
  EXPECT_EQ(driver.state(normal), "queued");
}

TEST(LedgerRoom, WhoHoldsLessIsServedFirst) {
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

TEST(LedgerRoom, StarvingIsServedBeforeHighPriority) {
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

TEST(LedgerRoom, BackFillNeverDelaysTheHead) {
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

TEST(LedgerRoom, PreemptsOnlyWhatAgreedToIt) {
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

TEST(LedgerRoom, TheWarningIsWithdrawnWhenTheUrgentRequestGoes) {
  LedgerDriver driver;
  driver.observe({seven_slices()[0]});
  LeaseRequest low = with_priority(request(1000, "1g.5gb"), Priority::kLow);
  low.is_preemptible = true;
  const LeaseId yielding = driver.ask(low);
  const LeaseId high = driver.ask(with_priority(queued(request(1002, "1g.5gb")), Priority::kHigh));

  driver.release(high, 1002);

  EXPECT_EQ(driver.state(yielding), "active");
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

}  // namespace
}  // namespace septet::lend
