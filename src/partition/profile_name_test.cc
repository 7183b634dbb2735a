#include "partition/profile_name.h"

#include <gmock/gmock.h>

namespace septet::partition {
namespace {

using testing::ElementsAre;

TEST(ProfileName, ReadsSlicesAndMemory) {
  const auto name = parse_profile_name("1g.5gb");

  ASSERT_TRUE(name);
  EXPECT_EQ(name->slices, 1U);
  EXPECT_EQ(name->memory_gb, 5U);
  EXPECT_FALSE(name->compute_slices);
  EXPECT_TRUE(name->attributes.empty());
}

TEST(ProfileName, ReadsComputeSlicesAndAttributes) {
  const auto name = parse_profile_name("MIG 1c.3g.20GB+me.all,gfx");

  ASSERT_TRUE(name);
  EXPECT_EQ(name->compute_slices, 1U);
  EXPECT_EQ(name->slices, 3U);
  EXPECT_THAT(name->attributes, ElementsAre("gfx", "me.all"));
}

TEST(ProfileName, ReadsTheShortFormAndTheMinusForm) {
  EXPECT_EQ(parse_profile_name("3g")->slices, 3U);
  EXPECT_EQ(parse_profile_name("1g+me")->attributes.front(), "me");
  EXPECT_EQ(parse_profile_name("1g.24gb-me")->sign, '-');
}

TEST(ProfileName, WritesWhatItRead) {
  for (const char* text :
       {"1g.5gb", "1c.2g.10gb", "1g.24gb+me.all", "1g.24gb-me", "3g", "2g+gfx"}) {
    EXPECT_EQ(to_string(*parse_profile_name(text)), text);
  }
}

TEST(ProfileName, RefusesWhatNoDriverWrites) {
  for (const char* text :
       {"", "g", "0g", "1g.", "1g.gb", "1.5gb", "4c.2g.10gb", "1g.5gb+", "1g.5gb+1a", "1g.5gb+.a",
        "1g.5gb+a.", "1g.5gb+a,a", "1g.5gb+a-b", "1g.5gb.x", "1c", "99999g", "-1g", "19"}) {
    EXPECT_FALSE(parse_profile_name(text)) << text;
  }
}

}  // namespace
}  // namespace septet::partition
