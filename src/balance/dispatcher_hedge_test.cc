// Requests that are sent twice: when, where, and what becomes of the two copies.

#include "balance/dispatcher_fixture.h"

namespace septet::balance {
namespace {

class DispatcherHedgeTest : public DispatcherTest {
 protected:
  // Two replicas whose requests of 10 ms have paid for some hedges.
  void start_hedging(double budget = 0.05) {
    Dispatcher::Options options;
    options.hedge_percentile = 0.95;
    options.hedge_budget = budget;
    start(options, 2);
    for (int i = 0; i < 256; ++i) {
      const Ticket ticket = send();
      now_ += milliseconds(10);
      dispatcher_->completed(now_, ticket);
    }
  }
  Ticket send(bool may_be_hedged = true, std::uint64_t bytes = 100) {
    Dispatcher::Arrival arrival;
    arrival.model = model_;
    arrival.deadline = now_ + seconds(60);
    arrival.may_be_hedged = may_be_hedged;
    arrival.bytes = bytes;
    arrival.cookie = ++cookie_;
    EXPECT_FALSE(dispatcher_->arrive(now_, arrival).refused);
    const auto assignment = dispatcher_->next(now_);
    EXPECT_TRUE(assignment);
    replica_ = assignment->replica;
    return assignment->ticket;
  }
  // The copy of the one request that is outstanding.
  Ticket hedge() {
    now_ += milliseconds(12);
    const auto assignment = dispatcher_->next_hedge(now_);
    EXPECT_TRUE(assignment);
    EXPECT_EQ(assignment->cookie, cookie_);
    return assignment->ticket;
  }
  std::uint64_t completed() {
    return dispatcher_->view(ReplicaIndex(0)).completed +
           dispatcher_->view(ReplicaIndex(1)).completed;
  }

  ReplicaIndex replica_;  // of the last send()
};

TEST_F(DispatcherHedgeTest, ALateRequestGoesToTheIdleReplica) {
  start_hedging();

  send();
  const std::optional<Instant> due = dispatcher_->next_deadline();
  const auto early = dispatcher_->next_hedge(now_ + milliseconds(9));
  const auto late = dispatcher_->next_hedge(now_ + milliseconds(11));

  ASSERT_TRUE(due);
  EXPECT_GE(*due, now_ + milliseconds(10));
  EXPECT_LE(*due, now_ + milliseconds(11));
  EXPECT_FALSE(early);
  ASSERT_TRUE(late);
  EXPECT_NE(late->replica, replica_);
  EXPECT_EQ(late->cookie, cookie_);
}

TEST_F(DispatcherHedgeTest, ARequestIsNeverHedgedTwice) {
  start_hedging();
  const ReplicaIndex third = dispatcher_->add_replica(now_);
  EXPECT_EQ(dispatcher_->next_probe(now_), third);
  dispatcher_->probe_succeeded(third);

  const Ticket first = send();
  const Ticket second = hedge();

  EXPECT_FALSE(dispatcher_->next_hedge(now_ + seconds(1)));
  EXPECT_FALSE(dispatcher_->failed(now_, second, Failure::kConnectionLost));
  EXPECT_FALSE(dispatcher_->next_hedge(now_ + seconds(1)));
  dispatcher_->completed(now_, first);
}

TEST_F(DispatcherHedgeTest, ACopyNeverWaitsBehindAnother) {
  start_hedging();

  const Ticket first = send();
  const Ticket other = send();

  EXPECT_FALSE(dispatcher_->next_hedge(now_ + seconds(1)));
  EXPECT_FALSE(dispatcher_->next_deadline());  // nothing to come back for
  dispatcher_->completed(now_ + milliseconds(20), other);
  EXPECT_TRUE(dispatcher_->next_hedge(now_ + milliseconds(20)));
  dispatcher_->completed(now_ + milliseconds(20), first);
}

TEST_F(DispatcherHedgeTest, WhatChangesSomethingOrWasPassedOnIsNotHedged) {
  start_hedging();

  const Ticket changes = send(false);
  EXPECT_FALSE(dispatcher_->next_hedge(now_ + seconds(1)));
  dispatcher_->completed(now_, changes);
  const Ticket passed_on = send();
  dispatcher_->forbid_repeat(passed_on);
  EXPECT_FALSE(dispatcher_->next_hedge(now_ + seconds(1)));
}

TEST_F(DispatcherHedgeTest, TheBudgetBoundsTheShareOfHedges) {
  start_hedging(0.01);  // 256 completed pay for two
  int hedges = 0;

  for (int i = 0; i < 20; ++i) {
    const Ticket first = send();
    now_ += milliseconds(12);
    const auto copy = dispatcher_->next_hedge(now_);
    hedges += copy ? 1 : 0;
    if (copy) {
      dispatcher_->completed(now_, copy->ticket);
    }
    dispatcher_->completed(now_, first);
  }

  EXPECT_EQ(hedges, 2);
}

TEST_F(DispatcherHedgeTest, NothingIsHedgedBeforeThePercentileIsKnown) {
  Dispatcher::Options options;
  options.hedge_percentile = 0.95;
  start(options, 2);

  send();

  EXPECT_FALSE(dispatcher_->next_hedge(now_ + seconds(1)));
}

TEST_F(DispatcherHedgeTest, LargeBodiesAreComparedWithLargeOnes) {
  start_hedging();

  send(true, 1 << 20);

  EXPECT_FALSE(dispatcher_->next_hedge(now_ + seconds(1)));
}

TEST_F(DispatcherHedgeTest, TheCopyWinsAndTheOriginalIsCountedNowhere) {
  start_hedging();
  const std::uint64_t before = completed();
  const Ticket first = send();
  const ReplicaIndex slow = replica_;
  const Ticket second = hedge();

  dispatcher_->completed(now_, second);

  EXPECT_EQ(dispatcher_->hedges().won, 1U);
  EXPECT_EQ(dispatcher_->view(slow).outstanding, 1U);  // it is busy all the same
  EXPECT_FALSE(dispatcher_->failed(now_, first, Failure::kConnectionLost));
  EXPECT_EQ(dispatcher_->retries(), 0U);
  EXPECT_EQ(dispatcher_->outstanding(), 0U);
  EXPECT_EQ(completed(), before + 1);
}

TEST_F(DispatcherHedgeTest, TheOriginalWinsAndTheCopyIsCountedNowhere) {
  start_hedging();
  const std::uint64_t before = completed();
  const Ticket first = send();
  const Ticket second = hedge();

  dispatcher_->completed(now_, first);
  dispatcher_->completed(now_, second);

  EXPECT_EQ(dispatcher_->hedges().lost, 1U);
  EXPECT_EQ(dispatcher_->hedges().won, 0U);
  EXPECT_EQ(completed(), before + 1);
}

TEST_F(DispatcherHedgeTest, ALosersTimeCountsForItsReplicasSpeed) {
  start_hedging();
  const Ticket first = send();
  const ReplicaIndex slow = replica_;
  const double before = dispatcher_->view(slow).per_second;
  const Ticket second = hedge();
  dispatcher_->completed(now_, second);

  dispatcher_->completed(now_ + milliseconds(200), first);

  EXPECT_LT(dispatcher_->view(slow).per_second, 0.5 * before);
}

TEST_F(DispatcherHedgeTest, TheOneThatIsLeftGoesOnAndMayBeSentAgain) {
  start_hedging();
  const Ticket first = send();
  const Ticket second = hedge();

  EXPECT_FALSE(dispatcher_->failed(now_, first, Failure::kBadReply));
  EXPECT_EQ(dispatcher_->queued(), 0U);
  EXPECT_TRUE(dispatcher_->failed(now_, second, Failure::kBadReply));
  const auto again = dispatcher_->next(now_);

  ASSERT_TRUE(again);
  EXPECT_EQ(again->ticket, second);
  EXPECT_EQ(again->cookie, cookie_);
  EXPECT_EQ(dispatcher_->hedges().failed, 1U);
  dispatcher_->completed(now_, second);
  EXPECT_EQ(dispatcher_->hedges().won, 0U);
}

TEST_F(DispatcherHedgeTest, AClientThatGoesTakesBothWithIt) {
  start_hedging();
  const Ticket first = send();
  const Ticket second = hedge();

  EXPECT_FALSE(dispatcher_->cancel(first));
  EXPECT_FALSE(dispatcher_->cancel(second));
  EXPECT_FALSE(dispatcher_->failed(now_, second, Failure::kStaleConnection));
  dispatcher_->completed(now_, first);

  EXPECT_EQ(dispatcher_->hedges().dropped, 1U);
  EXPECT_EQ(dispatcher_->hedges().won + dispatcher_->hedges().lost, 0U);
  EXPECT_EQ(dispatcher_->outstanding(), 0U);
}

TEST(LearnedLatency, KnowsThePercentileWithinSixPercent) {
  LearnedLatency latency(0.95);
  EXPECT_FALSE(latency.percentile());

  for (int i = 0; i < 10'000; ++i) {
    latency.observe(microseconds(i * 7 % 1000));
  }

  ASSERT_TRUE(latency.percentile());
  EXPECT_GE(*latency.percentile(), microseconds(945));
  EXPECT_LE(*latency.percentile(), microseconds(1010));
}

TEST(LearnedLatency, ForgetsWhatWas) {
  LearnedLatency latency(0.95);
  for (int i = 0; i < 10'000; ++i) {
    latency.observe(seconds(10));
  }

  for (int i = 0; i < 20'000; ++i) {
    latency.observe(milliseconds(1));
  }

  EXPECT_LE(*latency.percentile(), microseconds(1070));
}

}  // namespace
}  // namespace septet::balance
