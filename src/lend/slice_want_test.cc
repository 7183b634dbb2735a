#include "lend/slice_want.h"

#include <gtest/gtest.h>

#include "support/ledger_driver.h"

namespace septet::lend {
namespace {

TEST(SliceWant, ReadsWhatItWrites) {
  for (const char* text :
       {"1g.5gb", "3g:2", "1c.3g.20gb", "1g.5gb+me", "gpu", "gpu:2", "gpu@0", ">=10240MiB",
        "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb30", "0:3", "0:3:1", "mps:25%", "mps:25%,10240MiB",
        "mps:25%@3g.20gb", "time-slice", "time-slice:8192MiB", "time-slice:8192MiB@gpu"}) {
    const Result<SliceWant> want = parse_slice_want(text);

    ASSERT_TRUE(want.ok()) << text << ": " << want.error().text();
    EXPECT_EQ(to_string(*want), text);
  }
}

TEST(SliceWant, RefusesNonsenseAndShowsTheForms) {
  for (const char* text : {"",
                           "banana",
                           "1g.5gb:0",
                           "1g.5gb:x",
                           "1g.5gb:9999",
                           ">=",
                           ">=0",
                           ">=x",
                           "mps",
                           "mps:25",
                           "mps:0%",
                           "mps:101%",
                           "mps:abc%",
                           "mps:14.28%",
                           "mps:25%,",
                           "mps:25%,0",
                           "mps:25%,5XB",
                           "mps:25%@somewhere",
                           "time-slice:",
                           "gpu:-1",
                           "gpux",
                           "3",
                           "0:3:1:2"}) {
    const Result<SliceWant> want = parse_slice_want(text);
    if (std::string_view(text) == "time-slice:") {
      continue;  // an empty budget is the default budget
    }

    ASSERT_FALSE(want.ok()) << text;
    EXPECT_EQ(want.error().kind, ErrorKind::kUsage) << text;
    EXPECT_FALSE(want.error().hint.empty()) << text;
  }
}

TEST(SliceWant, SlicesOnlyMatchesEveryProfileOfThatManySlices) {
  Partition partition = testing::seven_slices()[0];
  partition.profile = "3g.20gb";

  EXPECT_TRUE(could_serve(partition, *parse_slice_want("3g")));
  EXPECT_TRUE(could_serve(partition, *parse_slice_want("3g.20gb")));
  EXPECT_FALSE(could_serve(partition, *parse_slice_want("3g.40gb")));
  EXPECT_FALSE(could_serve(partition, *parse_slice_want("2g")));
  EXPECT_FALSE(could_serve(partition, *parse_slice_want("gpu")));
}

TEST(SliceWant, NamesAPartitionByUuidOrIndex) {
  const Partition partition = testing::seven_slices()[2];

  EXPECT_TRUE(could_serve(partition, *parse_slice_want("MIG-0-2")));
  EXPECT_TRUE(could_serve(partition, *parse_slice_want("0:9")));
  EXPECT_TRUE(could_serve(partition, *parse_slice_want("0:9:0")));
  EXPECT_FALSE(could_serve(partition, *parse_slice_want("0:8")));
}

TEST(SliceWant, MemoryOfAnMpsShareFollowsItsThreadsUnlessStated) {
  const Partition gpu = testing::whole_gpu();

  const Holding follows = holding_for(gpu, *parse_slice_want("mps:25%"));
  const Holding stated = holding_for(gpu, *parse_slice_want("mps:25%,4GB"));

  EXPECT_EQ(follows.memory_mib, 10240);
  EXPECT_EQ(follows.share_permille, 250U);
  EXPECT_EQ(stated.memory_mib, 4096);
  // 13 % of 40960 MiB is no whole number of GiB, which a daemon could not answer.
  EXPECT_EQ(holding_for(gpu, *parse_slice_want("mps:13%")).memory_mib, 5120);
}

TEST(SliceWant, AnImpossibleWantNamesWhatExists) {
  const Result<Ok> possible = check_possible(testing::seven_slices(), *parse_slice_want("3g.20gb"));

  ASSERT_FALSE(possible.ok());
  EXPECT_EQ(possible.error().kind, ErrorKind::kNoCapacity);
  EXPECT_EQ(possible.error().hint, "there is: 7 of 1g.5gb");
}

TEST(SliceWant, MoreThanThereAreIsImpossible) {
  EXPECT_TRUE(check_possible(testing::seven_slices(), *parse_slice_want("1g.5gb:7")).ok());
  EXPECT_FALSE(check_possible(testing::seven_slices(), *parse_slice_want("1g.5gb:8")).ok());
}

}  // namespace
}  // namespace septet::lend
