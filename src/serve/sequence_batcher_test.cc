#include "serve/sequence_batcher.h"

#include <gmock/gmock.h>

namespace septet::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Admission = SequenceBatcher::Admission;
using Request = SequenceBatcher::Request;

Instant at_us(std::int64_t count) { return Instant(microseconds(count)); }

inference::SequenceBatching direct() {
  inference::SequenceBatching batching;
  batching.max_sequence_idle = microseconds(1000);
  return batching;
}

inference::SequenceBatching oldest(int candidates, std::int64_t delay_us = 0) {
  inference::SequenceBatching batching = direct();
  batching.strategy = inference::SequenceBatching::Strategy::kOldest;
  batching.max_candidate_sequences = candidates;
  batching.max_queue_delay = microseconds(delay_us);
  return batching;
}

TEST(SequenceBatcher, TheFirstRequestMustHaveStart) {
  SequenceBatcher batcher(4, 1, direct());

  EXPECT_EQ(batcher.push(at_us(0), {.ticket = 1, .key = "a"}), Admission::kNotStarted);
  EXPECT_EQ(batcher.push(at_us(0), {.ticket = 1, .key = "a", .start = true}), Admission::kQueued);
  EXPECT_EQ(batcher.push(at_us(0), {.ticket = 2, .key = "a", .end = true}), Admission::kQueued);
  EXPECT_EQ(batcher.push(at_us(0), {.ticket = 3, .key = "a"}), Admission::kNotStarted);
}

TEST(SequenceBatcher, RunsOneRequestOfASequenceAtATimeInOrder) {
  SequenceBatcher batcher(4, 1, direct());
  batcher.push(at_us(0), {.ticket = 1, .key = "a", .start = true});
  batcher.push(at_us(0), {.ticket = 2, .key = "a"});

  EXPECT_THAT(batcher.take(at_us(0), 0), ElementsAre(1));
  EXPECT_THAT(batcher.take(at_us(0), 0), IsEmpty());
  batcher.finish(at_us(1), {"a"});
  EXPECT_THAT(batcher.take(at_us(1), 0), ElementsAre(2));
}

TEST(SequenceBatcher, BatchesDifferentSequencesOldestFirst) {
  SequenceBatcher batcher(2, 1, oldest(8));
  batcher.push(at_us(0), {.ticket = 1, .key = "a", .start = true});
  batcher.push(at_us(1), {.ticket = 2, .key = "b", .start = true});
  batcher.push(at_us(2), {.ticket = 3, .key = "c", .start = true});

  EXPECT_THAT(batcher.take(at_us(3), 0), ElementsAre(1, 2));
  EXPECT_THAT(batcher.take(at_us(3), 0), ElementsAre(3));
}

TEST(SequenceBatcher, ASequenceStaysOnItsInstance) {
  SequenceBatcher batcher(1, 2, direct());
  batcher.push(at_us(0), {.ticket = 1, .key = "a", .start = true});
  batcher.push(at_us(0), {.ticket = 2, .key = "b", .start = true});

  EXPECT_THAT(batcher.take(at_us(0), 0), ElementsAre(1));
  batcher.finish(at_us(1), {"a"});
  batcher.push(at_us(1), {.ticket = 3, .key = "a"});
  EXPECT_THAT(batcher.take(at_us(1), 1), ElementsAre(2));
  EXPECT_THAT(batcher.take(at_us(1), 1), IsEmpty());
  EXPECT_THAT(batcher.take(at_us(1), 0), ElementsAre(3));
}

TEST(SequenceBatcher, SequencesBeyondTheSlotsWaitForOneToEnd) {
  SequenceBatcher batcher(1, 1, direct());
  batcher.push(at_us(0), {.ticket = 1, .key = "a", .start = true, .end = true});
  batcher.push(at_us(0), {.ticket = 2, .key = "b", .start = true});

  EXPECT_THAT(batcher.take(at_us(0), 0), ElementsAre(1));
  EXPECT_THAT(batcher.take(at_us(0), 0), IsEmpty());
  batcher.finish(at_us(1), {"a"});
  EXPECT_THAT(batcher.take(at_us(1), 0), ElementsAre(2));
  EXPECT_THAT(batcher.take_ended(at_us(1)), ElementsAre("a"));
}

TEST(SequenceBatcher, AnIdleSequenceEnds) {
  SequenceBatcher batcher(1, 1, direct());
  batcher.push(at_us(0), {.ticket = 1, .key = "a", .start = true});
  batcher.take(at_us(0), 0);
  EXPECT_FALSE(batcher.next_deadline(at_us(0)).has_value());
  batcher.finish(at_us(10), {"a"});

  EXPECT_EQ(batcher.next_deadline(at_us(10)), at_us(1010));
  EXPECT_THAT(batcher.take_ended(at_us(1009)), IsEmpty());
  EXPECT_THAT(batcher.take_ended(at_us(1010)), ElementsAre("a"));
  EXPECT_EQ(batcher.push(at_us(1011), {.ticket = 2, .key = "a"}), Admission::kNotStarted);
}

TEST(SequenceBatcher, WaitsForABatchNoLongerThanTheDelay) {
  SequenceBatcher batcher(2, 1, oldest(8, 100));
  batcher.push(at_us(0), {.ticket = 1, .key = "a", .start = true});

  EXPECT_THAT(batcher.take(at_us(99), 0), IsEmpty());
  EXPECT_EQ(batcher.next_deadline(at_us(99)), at_us(100));
  EXPECT_THAT(batcher.take(at_us(100), 0), ElementsAre(1));
}

TEST(SequenceBatcher, NumbersAndTextsAreDifferentSequences) {
  EXPECT_NE(sequence_key(inference::SequenceId(std::uint64_t{1})),
            sequence_key(inference::SequenceId(std::string("1"))));
}

}  // namespace
}  // namespace septet::serve
