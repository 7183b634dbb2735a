// Requests that only one replica may have: those of sequences.

#include "balance/dispatcher_fixture.h"

namespace septet::balance {
namespace {

class DispatcherDirectTest : public DispatcherTest {
 protected:
  Dispatcher::Admission arrive_for(std::uint32_t replica) {
    Dispatcher::Arrival arrival;
    arrival.model = model_;
    arrival.deadline = at_ms(1'000'000);
    arrival.only = ReplicaIndex(replica);
    arrival.cookie = ++cookie_;
    return dispatcher_->arrive(now_, arrival);
  }
};

TEST_F(DispatcherDirectTest, GoToTheirReplicaAtOnceInTheirOrder) {
  start({.fixed_bound = 1}, 2);
  arrive(now_);
  ASSERT_TRUE(dispatcher_->next(now_));

  for (int i = 0; i < 3; ++i) {
    arrive_for(0);
  }

  for (std::uint64_t cookie = cookie_ - 2; cookie <= cookie_; ++cookie) {
    const auto assignment = dispatcher_->next(now_);
    ASSERT_TRUE(assignment);
    EXPECT_EQ(assignment->replica, ReplicaIndex(0));
    EXPECT_EQ(assignment->cookie, cookie);
  }
  EXPECT_FALSE(dispatcher_->next(now_));
  EXPECT_EQ(dispatcher_->queued(), 0U);
}

TEST_F(DispatcherDirectTest, LeaveOthersTheirPlaces) {
  start({.fixed_bound = 1}, 1);
  const Ticket direct = arrive_for(0).ticket;
  dispatcher_->next(now_);

  arrive(now_);
  const auto other = dispatcher_->next(now_);

  ASSERT_TRUE(other);
  dispatcher_->completed(now_, direct);
  dispatcher_->completed(now_, other->ticket);
  EXPECT_EQ(dispatcher_->outstanding(), 0U);
  EXPECT_EQ(dispatcher_->view(ReplicaIndex(0)).completed, 2U);
}

TEST_F(DispatcherDirectTest, AreNotSentToAnotherWhenTheirReplicaIsLost) {
  start({}, 2);
  const Ticket ticket = arrive_for(1).ticket;
  dispatcher_->next(now_);

  EXPECT_FALSE(dispatcher_->failed(now_, ticket, Failure::kConnectionLost));
  EXPECT_FALSE(dispatcher_->next(now_));
}

TEST_F(DispatcherDirectTest, GoToTheSameOverANewConnection) {
  start({}, 2);
  const Ticket ticket = arrive_for(1).ticket;
  dispatcher_->next(now_);

  EXPECT_TRUE(dispatcher_->failed(now_, ticket, Failure::kStaleConnection));
  const auto again = dispatcher_->next(now_);

  ASSERT_TRUE(again);
  EXPECT_EQ(again->replica, ReplicaIndex(1));
}

TEST_F(DispatcherDirectTest, CanBeCancelledBeforeTheyAreSent) {
  start({}, 1);

  EXPECT_TRUE(dispatcher_->cancel(arrive_for(0).ticket));

  EXPECT_FALSE(dispatcher_->next(now_));
  EXPECT_EQ(dispatcher_->queued(), 0U);
}

}  // namespace
}  // namespace septet::balance
