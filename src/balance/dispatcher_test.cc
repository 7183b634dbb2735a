#include <gtest/gtest.h>

#include <set>

#include "balance/dispatcher_fixture.h"

namespace septet::balance {
namespace {

TEST_F(DispatcherTest, PullSendsNoMoreThanTheBound) {
  start({.fixed_bound = 1}, 2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(arrive(at_ms(1)).refused);
  }

  const auto first = dispatcher_->next(at_ms(1));
  const auto second = dispatcher_->next(at_ms(1));
  const auto third = dispatcher_->next(at_ms(1));

  ASSERT_TRUE(first && second);
  EXPECT_NE(first->replica, second->replica);
  EXPECT_FALSE(third);
  dispatcher_->completed(at_ms(9), second->ticket);
  const auto pulled = dispatcher_->next(at_ms(9));
  ASSERT_TRUE(pulled);
  EXPECT_EQ(pulled->replica, second->replica);
}

TEST_F(DispatcherTest, PullPrefersTheFasterIdleReplica) {
  start({.fixed_bound = 1}, 3);
  teach(0, milliseconds(30));
  teach(1, milliseconds(10));
  teach(2, milliseconds(20));

  std::vector<std::uint32_t> order;
  for (int i = 0; i < 3; ++i) {
    arrive(now_);
    order.push_back(dispatcher_->next(now_)->replica.value());
  }

  EXPECT_EQ(order, (std::vector<std::uint32_t>{1, 2, 0}));
}

TEST_F(DispatcherTest, ShortestDelayGivesATieToTheIdleReplica) {
  start({.policy = Policy::kShortestExpectedDelay, .learn_speed = false}, 2);
  dispatcher_->set_speed(ReplicaIndex(0), model_, 2);
  dispatcher_->set_speed(ReplicaIndex(1), model_, 1);
  std::vector<std::uint32_t> order;
  for (int i = 0; i < 3; ++i) {
    arrive(at_ms(1));
    order.push_back(dispatcher_->next(at_ms(1))->replica.value());
  }

  EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 1, 0}));
}

TEST_F(DispatcherTest, TheEarlierDeadlineLeavesFirst) {
  start({.fixed_bound = 1}, 1);
  arrive(at_ms(1), at_ms(500));
  const Dispatcher::Admission urgent = arrive(at_ms(1), at_ms(100));

  const auto sent = dispatcher_->next(at_ms(1));

  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->ticket, urgent.ticket);
}

TEST_F(DispatcherTest, ALateHeadIsRefusedAndNotSent) {
  start({.fixed_bound = 1}, 1);
  arrive(at_ms(1), at_ms(100));
  ASSERT_TRUE(dispatcher_->next(at_ms(1)));
  arrive(at_ms(1), at_ms(50));
  EXPECT_EQ(dispatcher_->next_deadline(), at_ms(50));

  const auto refused = dispatcher_->next_refused(at_ms(50));

  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->why, Dispatcher::Refusal::kDeadline);
  EXPECT_EQ(dispatcher_->queued(), 0U);
}

TEST_F(DispatcherTest, AStrictDeadlineThatCannotBeMadeIsRefusedAtOnce) {
  start({.fixed_bound = 1}, 1);
  teach(0, milliseconds(10));
  arrive(now_);
  arrive(now_);
  Dispatcher::Arrival arrival;
  arrival.model = model_;
  arrival.deadline = now_ + milliseconds(15);
  arrival.deadline_is_strict = true;

  const Dispatcher::Admission admission = dispatcher_->arrive(now_, arrival);

  EXPECT_EQ(admission.refused, Dispatcher::Refusal::kDeadline);
}

TEST_F(DispatcherTest, TheQueueIsBounded) {
  start({.max_queued = 2, .fixed_bound = 1}, 1);
  arrive(at_ms(1));
  arrive(at_ms(1));

  EXPECT_EQ(arrive(at_ms(1)).refused, Dispatcher::Refusal::kQueueFull);
}

TEST_F(DispatcherTest, TheBoundFollowsRoundTripServiceTimeAndLoad) {
  start({}, 2);
  const auto serve = [this](Duration service, Duration pause, int count) {
    for (int i = 0; i < count; ++i) {
      arrive(now_);
      const auto sent = dispatcher_->next(now_);
      now_ += service;
      dispatcher_->completed(now_, sent->ticket);
      now_ += pause;
    }
  };
  dispatcher_->set_round_trip(microseconds(60));
  serve(milliseconds(12), milliseconds(1), 128);
  EXPECT_EQ(dispatcher_->bound(model_), 1U);

  dispatcher_->set_round_trip(microseconds(600));  // r/S = .05
  serve(milliseconds(12), milliseconds(1), 128);
  EXPECT_EQ(dispatcher_->bound(model_), 2U);
}

TEST_F(DispatcherTest, EveryPolicyUsesEveryReplicaAndLosesNothing) {
  for (const Policy policy :
       {Policy::kPull, Policy::kRoundRobin, Policy::kRandom, Policy::kPowerOfTwo,
        Policy::kLeastOutstanding, Policy::kShortestExpectedDelay}) {
    start({.policy = policy}, 7);
    Prng prng(5);
    std::set<std::uint32_t> used;
    std::vector<Ticket> outstanding;
    std::uint64_t done = 0;
    for (int i = 0; i < 2000; ++i) {
      now_ += milliseconds(1);
      EXPECT_FALSE(arrive(now_).refused);
      while (const auto sent = dispatcher_->next(now_)) {
        used.insert(sent->replica.value());
        outstanding.push_back(sent->ticket);
      }
      if (outstanding.size() > 5) {
        const auto which = static_cast<std::ptrdiff_t>(prng.below(outstanding.size()));
        dispatcher_->completed(now_, outstanding[static_cast<std::size_t>(which)]);
        outstanding.erase(outstanding.begin() + which);
        ++done;
      }
    }
    EXPECT_EQ(used.size(), 7U) << to_string(policy);
    EXPECT_EQ(done + outstanding.size() + dispatcher_->queued(), 2000U) << to_string(policy);
    EXPECT_EQ(dispatcher_->outstanding(), outstanding.size());
  }
}

TEST_F(DispatcherTest, ABatchTakesWhatWaitsUpToItsCapAndNoMoreUntilItIsDone) {
  start({.fixed_bound = 1}, 1);
  dispatcher_->set_capacity(ReplicaIndex(0), model_, 1, 3);
  for (int i = 0; i < 4; ++i) {
    arrive(at_ms(1));
  }
  std::vector<Ticket> batch;
  while (const auto sent = dispatcher_->next(at_ms(1))) {
    batch.push_back(sent->ticket);
  }

  EXPECT_EQ(batch.size(), 3U);
  dispatcher_->completed(at_ms(5), batch[0]);
  dispatcher_->completed(at_ms(5), batch[1]);
  EXPECT_FALSE(dispatcher_->next(at_ms(5)));
  dispatcher_->completed(at_ms(5), batch[2]);
  EXPECT_TRUE(dispatcher_->next(at_ms(5)));
  EXPECT_NEAR(dispatcher_->view(ReplicaIndex(0)).per_second, 750, 1);
}

TEST_F(DispatcherTest, WhatArrivesLaterDoesNotJoinARunningBatch) {
  start({.fixed_bound = 1}, 1);
  dispatcher_->set_capacity(ReplicaIndex(0), model_, 1, 3);
  arrive(at_ms(1));
  ASSERT_TRUE(dispatcher_->next(at_ms(1)));

  arrive(at_ms(2));

  EXPECT_FALSE(dispatcher_->next(at_ms(2)));
}

TEST_F(DispatcherTest, EveryInstanceTakesABatch) {
  start({.fixed_bound = 1}, 1);
  dispatcher_->set_capacity(ReplicaIndex(0), model_, 2, 1);
  for (int i = 0; i < 3; ++i) {
    arrive(at_ms(1));
  }

  EXPECT_TRUE(dispatcher_->next(at_ms(1)));
  EXPECT_TRUE(dispatcher_->next(at_ms(1)));
  EXPECT_FALSE(dispatcher_->next(at_ms(1)));
}

TEST_F(DispatcherTest, AFloodingTenantDoesNotStarveAnother) {
  start({.fixed_bound = 1}, 1);
  const auto arrive_of = [this](std::uint32_t tenant, std::uint32_t priority) {
    Dispatcher::Arrival arrival;
    arrival.model = model_;
    arrival.deadline = at_ms(1'000'000);
    arrival.tenant = tenant;
    arrival.priority = priority;
    arrival.cookie = tenant;
    EXPECT_FALSE(dispatcher_->arrive(at_ms(1), arrival).refused);
  };
  for (int i = 0; i < 6; ++i) {
    arrive_of(1, 128);
  }
  arrive_of(2, 128);
  arrive_of(2, 128);
  arrive_of(3, 1);

  std::vector<std::uint64_t> order;
  while (const auto sent = dispatcher_->next(at_ms(1))) {
    order.push_back(sent->cookie);
    dispatcher_->completed(at_ms(1), sent->ticket);
  }

  EXPECT_EQ(order, (std::vector<std::uint64_t>{3, 1, 2, 1, 2, 1, 1, 1, 1}));
}

TEST_F(DispatcherTest, ALateRequestBehindAMoreUrgentHeadIsFound) {
  start({.fixed_bound = 1}, 1);
  arrive(at_ms(1));
  ASSERT_TRUE(dispatcher_->next(at_ms(1)));
  arrive(at_ms(1));
  Dispatcher::Arrival patient;
  patient.model = model_;
  patient.deadline = at_ms(50);
  patient.priority = 200;
  patient.cookie = 77;
  EXPECT_FALSE(dispatcher_->arrive(at_ms(1), patient).refused);

  EXPECT_FALSE(dispatcher_->next_refused(at_ms(60)));
  EXPECT_FALSE(dispatcher_->next_late(at_ms(49)));
  const auto late = dispatcher_->next_late(at_ms(60));

  ASSERT_TRUE(late);
  EXPECT_EQ(late->cookie, 77U);
  EXPECT_EQ(dispatcher_->queued(), 1U);
}

TEST_F(DispatcherTest, CancelTakesAQueuedRequestOut) {
  start({.fixed_bound = 1}, 1);
  const Dispatcher::Admission first = arrive(at_ms(1));
  const Dispatcher::Admission second = arrive(at_ms(1));

  EXPECT_TRUE(dispatcher_->cancel(first.ticket));

  EXPECT_EQ(dispatcher_->next(at_ms(1))->ticket, second.ticket);
}

TEST_F(DispatcherTest, WhatIsPinnedSpreadsOverTheReplicasAndKeepsThemFromGoing) {
  start({.fixed_bound = 1}, 2);
  const auto first = dispatcher_->pin(model_);
  const auto second = dispatcher_->pin(model_);

  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  dispatcher_->drain(*first);
  EXPECT_FALSE(dispatcher_->idle(*first));
  EXPECT_EQ(dispatcher_->pin(model_), second);
  dispatcher_->unpin(*first);
  EXPECT_TRUE(dispatcher_->idle(*first));
}

TEST_F(DispatcherTest, ABusyReplicaIsBusyBeforeItIsIdleAgain) {
  start({.fixed_bound = 1}, 1);
  arrive(at_ms(1));
  ASSERT_TRUE(dispatcher_->next(at_ms(1)));

  EXPECT_EQ(dispatcher_->view(ReplicaIndex(0), at_ms(41)).busy, milliseconds(40));
}

TEST_F(DispatcherTest, EveryModelsQueueIsCounted) {
  start({.fixed_bound = 1}, 1);
  const ModelIndex other = dispatcher_->add_model();
  for (int i = 0; i < 3; ++i) {
    arrive(at_ms(1));
  }

  EXPECT_EQ(dispatcher_->queued(model_), 3U);
  EXPECT_EQ(dispatcher_->queued(other), 0U);
}

}  // namespace
}  // namespace septet::balance
