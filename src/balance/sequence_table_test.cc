#include "balance/sequence_table.h"

#include <gtest/gtest.h>

namespace septet::balance {
namespace {

constexpr Instant at_s(std::int64_t s) { return Instant(seconds(s)); }

TEST(SequenceTable, KnowsWhereASequenceIsUntilItEnds) {
  SequenceTable table;
  const std::string key = SequenceTable::key("m", "7");

  EXPECT_FALSE(table.find(at_s(0), key));
  table.begin(at_s(0), key, ReplicaIndex(2));
  EXPECT_EQ(table.find(at_s(1), key), ReplicaIndex(2));
  EXPECT_FALSE(table.find(at_s(1), SequenceTable::key("n", "7")));
  EXPECT_FALSE(table.find(at_s(1), SequenceTable::key("m", "\"7\"")));
  EXPECT_EQ(table.end(key), ReplicaIndex(2));

  EXPECT_FALSE(table.find(at_s(2), key));
  EXPECT_FALSE(table.end(key));
}

TEST(SequenceTable, ForgetsWhatIsIdle) {
  SequenceTable table;
  table.begin(at_s(0), "a", ReplicaIndex(0));
  table.begin(at_s(0), "b", ReplicaIndex(1));
  table.begin(at_s(0), "c", ReplicaIndex(0));
  table.find(at_s(5), "a");

  EXPECT_EQ(table.end_idle(at_s(4), ReplicaIndex(0)), std::vector{ReplicaIndex(0)});
  EXPECT_TRUE(table.end_idle(at_s(4), ReplicaIndex(0)).empty());
  EXPECT_EQ(table.end_idle(at_s(4)), std::vector{ReplicaIndex(1)});
  EXPECT_TRUE(table.end_idle(at_s(4)).empty());
  EXPECT_TRUE(table.find(at_s(6), "a"));
}

TEST(SequenceTable, LongNamesTakeNoMoreMemoryAndStayApart) {
  const std::string long_id(1'000'000, 'x');

  EXPECT_LE(SequenceTable::key("m", long_id).size(), SequenceTable::kMostKeyBytes);
  EXPECT_EQ(SequenceTable::key("m", long_id), SequenceTable::key("m", long_id));
  EXPECT_NE(SequenceTable::key("m", long_id), SequenceTable::key("n", long_id));
  EXPECT_NE(SequenceTable::key("m", long_id), SequenceTable::key("m", long_id + "y"));
}

}  // namespace
}  // namespace septet::balance
