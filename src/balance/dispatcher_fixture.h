// What the dispatcher's tests share: a dispatcher with replicas that are up, and verbs for what
// happens to them. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "balance/dispatcher.h"

namespace septet::balance {

inline Instant at_ms(std::int64_t ms) { return Instant(milliseconds(ms)); }

// A dispatcher with n replicas that are up, and verbs for what happens to them.
class DispatcherTest : public testing::Test {
 protected:
  void start(Dispatcher::Options options, std::uint32_t replicas) {
    dispatcher_.emplace(options);
    model_ = dispatcher_->add_model();
    for (std::uint32_t i = 0; i < replicas; ++i) {
      const ReplicaIndex replica = dispatcher_->add_replica(at_ms(0));
      EXPECT_EQ(dispatcher_->next_probe(at_ms(0)), replica);
      dispatcher_->probe_succeeded(replica);
    }
  }
  Dispatcher::Admission arrive(Instant now, Instant deadline = at_ms(1'000'000)) {
    Dispatcher::Arrival arrival;
    arrival.model = model_;
    arrival.deadline = deadline;
    arrival.cookie = ++cookie_;
    return dispatcher_->arrive(now, arrival);
  }
  // Serves one request alone on the given replica (the only one with room), taking so long.
  void teach(std::uint32_t replica, Duration service) {
    for (int i = 0; i < 30; ++i) {
      std::map<std::uint32_t, Ticket> sent;
      while (!sent.contains(replica)) {
        arrive(now_);
        const auto assignment = dispatcher_->next(now_);
        ASSERT_TRUE(assignment);
        sent[assignment->replica.value()] = assignment->ticket;
      }
      now_ += service;
      dispatcher_->completed(now_, sent[replica]);
      sent.erase(replica);
      for (const auto& [other, ticket] : sent) {
        EXPECT_FALSE(dispatcher_->cancel(ticket));
        EXPECT_FALSE(dispatcher_->failed(now_, ticket, Failure::kStaleConnection));
      }
    }
  }

  std::optional<Dispatcher> dispatcher_;
  ModelIndex model_;
  std::uint64_t cookie_ = 0;
  Instant now_ = at_ms(1);
};

}  // namespace septet::balance
