#include "serve/batcher.h"

#include <gmock/gmock.h>

namespace septet::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Instant at_us(std::int64_t count) { return Instant(microseconds(count)); }

BatchRequest request(Ticket ticket, int batch_size = 1, std::uint64_t shape = 0) {
  return {.ticket = ticket, .batch_size = batch_size, .shape_key = shape};
}

inference::DynamicBatching batching(std::vector<int> preferred = {}, std::int64_t delay_us = 0) {
  inference::DynamicBatching batching;
  batching.preferred_batch_sizes = std::move(preferred);
  batching.max_queue_delay = microseconds(delay_us);
  return batching;
}

TEST(Batcher, WithoutDynamicBatchingEachRequestRunsAlone) {
  Batcher batcher(8, std::nullopt);
  batcher.push(at_us(0), request(1));
  batcher.push(at_us(0), request(2));

  EXPECT_THAT(batcher.take(at_us(0)), ElementsAre(1));
  EXPECT_THAT(batcher.take(at_us(0)), ElementsAre(2));
  EXPECT_THAT(batcher.take(at_us(0)), IsEmpty());
}

TEST(Batcher, TakesAllThatFitsAtOnceWhenThereIsNoDelay) {
  Batcher batcher(4, batching());
  for (Ticket ticket = 1; ticket <= 6; ++ticket) {
    batcher.push(at_us(0), request(ticket));
  }

  EXPECT_THAT(batcher.take(at_us(0)), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(batcher.take(at_us(0)), ElementsAre(5, 6));
}

TEST(Batcher, WaitsForAFullBatchNoLongerThanTheDelay) {
  Batcher batcher(4, batching({}, 100));
  batcher.push(at_us(0), request(1));
  batcher.push(at_us(50), request(2));

  EXPECT_THAT(batcher.take(at_us(99)), IsEmpty());
  EXPECT_EQ(batcher.next_deadline(), at_us(100));
  EXPECT_THAT(batcher.take(at_us(100)), ElementsAre(1, 2));
}

TEST(Batcher, SendsTheLargestPreferredSizeThatTheFrontForms) {
  Batcher batcher(8, batching({2, 4}, 1000));
  for (Ticket ticket = 1; ticket <= 5; ++ticket) {
    batcher.push(at_us(0), request(ticket));
  }

  EXPECT_THAT(batcher.take(at_us(0)), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(batcher.take(at_us(0)), IsEmpty());
  EXPECT_THAT(batcher.take(at_us(1000)), ElementsAre(5));
}

TEST(Batcher, AnArrivalThatCompletesTheBatchEndsTheWait) {
  Batcher batcher(2, batching({}, 1000));
  batcher.push(at_us(0), request(1));
  ASSERT_THAT(batcher.take(at_us(1)), IsEmpty());

  batcher.push(at_us(2), request(2));

  EXPECT_THAT(batcher.take(at_us(2)), ElementsAre(1, 2));
}

TEST(Batcher, ARequestThatDoesNotFitStartsTheNextBatch) {
  Batcher batcher(4, batching({}, 1000));
  batcher.push(at_us(0), request(1, 3));
  batcher.push(at_us(0), request(2, 2));

  EXPECT_THAT(batcher.take(at_us(0)), ElementsAre(1));
  EXPECT_THAT(batcher.take(at_us(0)), IsEmpty());
}

TEST(Batcher, ShapesDoNotMixAndDoNotOvertake) {
  Batcher batcher(8, batching());
  batcher.push(at_us(0), request(1, 1, 10));
  batcher.push(at_us(0), request(2, 1, 20));
  batcher.push(at_us(0), request(3, 1, 10));

  EXPECT_THAT(batcher.take(at_us(0)), ElementsAre(1));
  EXPECT_THAT(batcher.take(at_us(0)), ElementsAre(2));
  EXPECT_THAT(batcher.take(at_us(0)), ElementsAre(3));
}

TEST(Batcher, HigherPrioritiesGoFirstAndUnknownOnesTakeTheDefault) {
  auto config = batching();
  config.priority_levels = 2;
  config.default_priority_level = 2;
  Batcher batcher(1, config);
  batcher.push(at_us(0), {.ticket = 1, .priority = 2});
  batcher.push(at_us(0), {.ticket = 2, .priority = 99});
  batcher.push(at_us(0), {.ticket = 3, .priority = 1});

  EXPECT_THAT(batcher.take(at_us(0)), ElementsAre(3));
  EXPECT_THAT(batcher.take(at_us(0)), ElementsAre(1));
  EXPECT_THAT(batcher.take(at_us(0)), ElementsAre(2));
}

TEST(Batcher, AFullQueueRefusesAtOnce) {
  auto config = batching();
  config.default_queue_policy.max_queue_size = 1;
  Batcher batcher(4, config);

  EXPECT_EQ(batcher.push(at_us(0), request(1)), Batcher::Admission::kQueued);
  EXPECT_EQ(batcher.push(at_us(0), request(2)), Batcher::Admission::kQueueFull);
  EXPECT_EQ(batcher.size(), 1U);
}

TEST(Batcher, ATimedOutRequestIsReportedOnceAndNeverRun) {
  auto config = batching({}, 1000);
  config.default_queue_policy.default_timeout = microseconds(10);
  Batcher batcher(4, config);
  batcher.push(at_us(0), request(1));
  batcher.push(at_us(5), request(2));

  EXPECT_EQ(batcher.next_time_out(), at_us(10));
  EXPECT_THAT(batcher.take_expired(at_us(9)), IsEmpty());
  EXPECT_THAT(batcher.take_expired(at_us(10)), ElementsAre(1));
  EXPECT_THAT(batcher.take(at_us(1005)), IsEmpty());
  EXPECT_THAT(batcher.take_expired(at_us(1005)), ElementsAre(2));
  EXPECT_TRUE(batcher.empty());
}

TEST(Batcher, UnderDelayATimedOutRequestRunsAfterTheOthersOfItsLevel) {
  auto config = batching();
  config.default_queue_policy.default_timeout = microseconds(10);
  config.default_queue_policy.timeout_action = inference::QueuePolicy::TimeoutAction::kDelay;
  Batcher batcher(1, config);
  batcher.push(at_us(0), request(1));
  batcher.push(at_us(15), request(2));

  EXPECT_THAT(batcher.take(at_us(16)), ElementsAre(2));
  EXPECT_THAT(batcher.take(at_us(16)), ElementsAre(1));
}

TEST(Batcher, ARequestsOwnTimeoutOnlyShortensAndOnlyWhereAllowed) {
  auto config = batching({}, 1000);
  config.default_queue_policy.default_timeout = microseconds(100);
  Batcher strict(4, config);
  config.default_queue_policy.allow_timeout_override = true;
  Batcher lenient(4, config);
  const BatchRequest shorter{.ticket = 1, .timeout_us = 10};
  const BatchRequest longer{.ticket = 2, .timeout_us = 1000};

  strict.push(at_us(0), shorter);
  EXPECT_EQ(strict.next_time_out(), at_us(100));
  lenient.push(at_us(0), longer);
  EXPECT_EQ(lenient.next_time_out(), at_us(100));
  lenient.push(at_us(0), shorter);
  EXPECT_EQ(lenient.next_time_out(), at_us(10));
}

TEST(Batcher, ARequestsTimeoutCountsWithoutDynamicBatchingToo) {
  Batcher batcher(0, std::nullopt);
  batcher.push(at_us(0), {.ticket = 1, .timeout_us = 10});

  EXPECT_THAT(batcher.take_expired(at_us(10)), ElementsAre(1));
}

TEST(Batcher, ACancelledRequestIsForgottenWithItsTimeOut) {
  Batcher batcher(0, std::nullopt);
  batcher.push(at_us(0), {.ticket = 1, .timeout_us = 10});

  EXPECT_TRUE(batcher.cancel(1));

  EXPECT_FALSE(batcher.cancel(1));
  EXPECT_FALSE(batcher.next_deadline().has_value());
  EXPECT_THAT(batcher.take_expired(at_us(10)), IsEmpty());
}

TEST(Batcher, TakeNowDoesNotWaitForABatchToGrow) {
  Batcher batcher(8, batching({}, 1000));
  batcher.push(at_us(0), request(1));

  EXPECT_THAT(batcher.take_now(at_us(0)), ElementsAre(1));
}

}  // namespace
}  // namespace septet::serve
