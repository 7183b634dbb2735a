// Replicas that die, come back, leave, or grow slow.

#include <gtest/gtest.h>

#include "balance/dispatcher_fixture.h"

namespace septet::balance {
namespace {

TEST_F(DispatcherTest, ALostConnectionEjectsAtOnceAndTheRequestGoesElsewhere) {
  start({.fixed_bound = 1}, 2);
  arrive(at_ms(1));
  const auto sent = dispatcher_->next(at_ms(1));

  EXPECT_TRUE(dispatcher_->failed(at_ms(2), sent->ticket, Failure::kConnectionLost));
  const auto again = dispatcher_->next(at_ms(2));

  ASSERT_TRUE(again);
  EXPECT_NE(again->replica, sent->replica);
  EXPECT_EQ(again->cookie, sent->cookie);
  EXPECT_EQ(dispatcher_->view(sent->replica).state, ReplicaState::kEjected);
  EXPECT_EQ(dispatcher_->retries(), 1U);
}

TEST_F(DispatcherTest, ARequestIsTriedThreeTimesAtMost) {
  start({.fixed_bound = 1}, 5);
  arrive(at_ms(1));
  for (int i = 0; i < 2; ++i) {
    const auto sent = dispatcher_->next(at_ms(1));
    EXPECT_TRUE(dispatcher_->failed(at_ms(1), sent->ticket, Failure::kConnectionLost));
  }

  const auto last = dispatcher_->next(at_ms(1));

  EXPECT_FALSE(dispatcher_->failed(at_ms(1), last->ticket, Failure::kConnectionLost));
}

TEST_F(DispatcherTest, AConnectThatFailsIsNoTry) {
  start({.fixed_bound = 1}, 6);
  arrive(at_ms(1));
  for (int i = 0; i < 5; ++i) {
    const auto sent = dispatcher_->next(at_ms(1));
    ASSERT_TRUE(sent);
    EXPECT_TRUE(dispatcher_->failed(at_ms(1), sent->ticket, Failure::kNotConnected));
  }
  EXPECT_TRUE(dispatcher_->next(at_ms(1)));
}

TEST_F(DispatcherTest, ALostReplicaIsWaitedForAndThenEverythingIsRefused) {
  start({.fixed_bound = 1}, 1);
  arrive(at_ms(1));
  arrive(at_ms(1));
  const auto sent = dispatcher_->next(at_ms(1));

  EXPECT_TRUE(dispatcher_->failed(at_ms(2), sent->ticket, Failure::kConnectionLost));

  EXPECT_FALSE(arrive(at_ms(5001)).refused);
  EXPECT_FALSE(dispatcher_->next_refused(at_ms(5001)));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(dispatcher_->next_refused(at_ms(5002))->why, Dispatcher::Refusal::kNoReplica);
  }
  EXPECT_EQ(arrive(at_ms(5002)).refused, Dispatcher::Refusal::kNoReplica);
}

TEST_F(DispatcherTest, AnEjectedReplicaComesBackThroughAProbe) {
  start({.fixed_bound = 1}, 2);
  arrive(at_ms(1));
  const auto sent = dispatcher_->next(at_ms(1));
  EXPECT_TRUE(dispatcher_->failed(at_ms(2), sent->ticket, Failure::kConnectionLost));
  const auto due = dispatcher_->next_deadline();
  ASSERT_TRUE(due);
  EXPECT_FALSE(dispatcher_->next_probe(*due - milliseconds(1)));

  EXPECT_EQ(dispatcher_->next_probe(*due), sent->replica);
  EXPECT_FALSE(dispatcher_->next_probe(*due));
  dispatcher_->probe_succeeded(sent->replica);

  EXPECT_EQ(dispatcher_->view(sent->replica).state, ReplicaState::kUp);
}

TEST_F(DispatcherTest, RequestsWaitForAReplicaThatIsJoining) {
  dispatcher_.emplace(Dispatcher::Options{});
  model_ = dispatcher_->add_model();
  const ReplicaIndex replica = dispatcher_->add_replica(at_ms(0));
  ASSERT_TRUE(dispatcher_->next_probe(at_ms(0)));

  EXPECT_FALSE(arrive(at_ms(0)).refused);
  EXPECT_FALSE(dispatcher_->next(at_ms(0)));
  dispatcher_->probe_succeeded(replica);

  EXPECT_TRUE(dispatcher_->next(at_ms(0)));
}

TEST_F(DispatcherTest, AReplicaThatNeverJoinsStopsTheWaiting) {
  dispatcher_.emplace(Dispatcher::Options{});
  model_ = dispatcher_->add_model();
  const ReplicaIndex replica = dispatcher_->add_replica(at_ms(0));
  arrive(at_ms(0));
  Instant now = at_ms(0);
  for (int i = 0; i < 100 && !dispatcher_->next_refused(now); ++i) {
    if (dispatcher_->next_probe(now)) {
      dispatcher_->probe_failed(now, replica);
    }
    now = *dispatcher_->next_deadline();
  }

  EXPECT_EQ(dispatcher_->queued(), 0U);
  EXPECT_EQ(now, at_ms(5000));
}

TEST_F(DispatcherTest, ADrainingReplicaFinishesAndGetsNothing) {
  start({.fixed_bound = 1}, 1);
  arrive(at_ms(1));
  arrive(at_ms(1));
  const auto sent = dispatcher_->next(at_ms(1));
  dispatcher_->drain(sent->replica);

  EXPECT_FALSE(dispatcher_->next(at_ms(1)));
  EXPECT_FALSE(dispatcher_->idle(sent->replica));
  dispatcher_->completed(at_ms(2), sent->ticket);

  EXPECT_TRUE(dispatcher_->idle(sent->replica));
  EXPECT_FALSE(dispatcher_->next(at_ms(2)));
}

TEST_F(DispatcherTest, ASlowedReplicaIsKnownWithinTenReplies) {
  start({.fixed_bound = 1}, 1);
  teach(0, milliseconds(10));
  const double before = dispatcher_->view(ReplicaIndex(0)).per_second;

  for (int i = 0; i < 10; ++i) {
    arrive(now_);
    const auto sent = dispatcher_->next(now_);
    now_ += milliseconds(33);
    dispatcher_->completed(now_, sent->ticket);
  }

  EXPECT_LT(dispatcher_->view(ReplicaIndex(0)).per_second, 0.4 * before);
}

TEST_F(DispatcherTest, AReplicaFarSlowerThanItsPeersIsEjectedButNotMoreThanHalf) {
  start({.policy = Policy::kRoundRobin}, 4);
  const std::array<std::int64_t, 4> service_ms = {10, 200, 10, 10};
  for (int i = 0; i < 200; ++i) {
    arrive(now_);
    const auto sent = dispatcher_->next(now_);
    now_ += milliseconds(service_ms[sent->replica.value()]);
    dispatcher_->completed(now_, sent->ticket);
  }

  EXPECT_EQ(dispatcher_->view(ReplicaIndex(1)).state, ReplicaState::kEjected);
  EXPECT_EQ(dispatcher_->view(ReplicaIndex(0)).state, ReplicaState::kUp);
}

}  // namespace
}  // namespace septet::balance
