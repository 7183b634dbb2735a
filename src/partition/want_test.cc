#include "partition/want.h"

#include <gmock/gmock.h>

namespace septet::partition {
namespace {

Want parsed(const std::vector<std::string>& words) {
  Result<Want> want = parse_want(words);
  EXPECT_TRUE(want.ok()) << want.error().text();
  return want.ok() ? *want : Want{};
}

ErrorKind refused(const std::vector<std::string>& words) {
  const Result<Want> want = parse_want(words);
  EXPECT_FALSE(want.ok());
  return want.ok() ? ErrorKind::kFailed : want.error().kind;
}

TEST(Want, CountsAfterANameOrBeforeIt) {
  const Want after = parsed({"1g.5gb:7"});
  const Want before = parsed({"7x1g.5gb"});

  ASSERT_EQ(after.items.size(), 1U);
  EXPECT_EQ(after.items[0].count, 7U);
  EXPECT_EQ(after, before);
}

TEST(Want, PlacesWithAnAtSign) {
  const Want want = parsed({"3g.20gb", "2g.10gb@4"});

  ASSERT_EQ(want.items.size(), 2U);
  EXPECT_FALSE(want.items[0].start);
  EXPECT_EQ(want.items[1].start, 4U);
}

TEST(Want, AcceptsItemsInOneQuotedWord) { EXPECT_EQ(parsed({"1g.5gb 1g.5gb"}).items.size(), 2U); }

TEST(Want, ReadsIdsAsNvidiaSmiDoes) {
  const Want want = parsed({"19,19,9:4"});

  ASSERT_EQ(want.items.size(), 3U);
  EXPECT_EQ(want.items[0].profile.id, gpu::ProfileId(19));
  EXPECT_EQ(want.items[2].start, 4U);
  EXPECT_EQ(want.items[2].count, 1U);
}

TEST(Want, NvidiaSmiListPlacesNamesByColon) {
  const Result<Want> want = parse_nvidia_smi_list("3g.20gb:4,MIG 2g.10gb,19:6");

  ASSERT_TRUE(want.ok());
  ASSERT_EQ(want->items.size(), 3U);
  EXPECT_EQ(want->items[0].start, 4U);
  EXPECT_EQ(want->items[1].profile.name->slices, 2U);
  EXPECT_EQ(want->items[2].start, 6U);
}

TEST(Want, ReadsMinima) {
  const Want want = parsed({">=10GB:2", ">=2g:3"});

  ASSERT_EQ(want.items.size(), 2U);
  EXPECT_EQ(want.items[0].profile.at_least_memory_gb, 10U);
  EXPECT_EQ(want.items[0].count, 2U);
  EXPECT_EQ(want.items[1].profile.at_least_slices, 2U);
  EXPECT_EQ(want.items[1].count, 3U);
}

TEST(Want, KeepsSeveralAttributesTogether) {
  const Want want = parsed({"1g.24gb+me,gfx,2g.48gb"});

  ASSERT_EQ(want.items.size(), 2U);
  EXPECT_EQ(want.items[0].profile.name->attributes.size(), 2U);
  EXPECT_EQ(want.items[1].profile.name->slices, 2U);
}

TEST(Want, RefusesWhatItCannotRead) {
  for (const char* word :
       {"1g.5gb:0", "1g.5gb:-1", "1g.5gb:999999", "1g.5gb:x", "3g.20gb@x", ">=GB", ">=10", "hello",
        "1g.5gb,,2g", "2x3g.20gb@4", "0x1g.5gb", "1g.5gb:"}) {
    EXPECT_EQ(refused({word}), ErrorKind::kUsage) << word;
  }
}

TEST(Want, NamesTheItemItCannotRead) {
  const std::vector<std::string> words = {"1g.5gb", "2q.10gb"};

  const Result<Want> want = parse_want(words);

  ASSERT_FALSE(want.ok());
  EXPECT_THAT(want.error().message, testing::HasSubstr("2q.10gb"));
}

}  // namespace
}  // namespace septet::partition
