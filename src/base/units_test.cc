#include "base/units.h"

#include <gtest/gtest.h>

namespace septet {
namespace {

TEST(ParseDuration, AddsDescendingUnits) {
  EXPECT_EQ(*parse_duration("4h"), std::chrono::hours(4));
  EXPECT_EQ(*parse_duration("1h30m"), std::chrono::minutes(90));
  EXPECT_EQ(*parse_duration("250ms"), milliseconds(250));
  EXPECT_EQ(*parse_duration("1.5s"), milliseconds(1500));
  EXPECT_EQ(*parse_duration("0"), Duration::zero());
}

TEST(ParseDuration, RefusesWhatIsNoDuration) {
  for (const char* wrong : {"", "h", "5", "-4h", "5m1h", "1m1m", "4 h", "4hours", "999999999d"}) {
    const auto result = parse_duration(wrong);

    ASSERT_FALSE(result.ok()) << wrong;
    EXPECT_EQ(result.error().kind, ErrorKind::kUsage) << wrong;
  }
}

TEST(FormatDuration, ShowsTheTwoLargestUnits) {
  EXPECT_EQ(format_duration(std::chrono::minutes(90)), "1h 30m");
  EXPECT_EQ(format_duration(seconds(45)), "45s");
  EXPECT_EQ(format_duration(std::chrono::hours(51)), "2d 3h");
  EXPECT_EQ(format_duration(std::chrono::hours(24) + seconds(5)), "1d");
  EXPECT_EQ(format_duration(milliseconds(250)), "250ms");
  EXPECT_EQ(format_duration(Duration::zero()), "0s");
}

TEST(ParseMemory, CountsInBinaryUnits) {
  EXPECT_EQ(*parse_memory_mib("10GB"), 10240);
  EXPECT_EQ(*parse_memory_mib("1.5g"), 1536);
  EXPECT_EQ(*parse_memory_mib("512MiB"), 512);
  EXPECT_EQ(*parse_memory_mib("512"), 512);
}

TEST(ParseMemory, RefusesWhatIsNoSize) {
  for (const char* wrong : {"", "GB", "-1GB", "10XB", "1e9GB", "99999999999TB"}) {
    EXPECT_FALSE(parse_memory_mib(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace septet
