#include "measure/arrival_trace.h"

#include <gmock/gmock.h>

namespace septet::measure {
namespace {

constexpr std::string_view kTrace =
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-30 23:59:59.9000000,4808,10\n"
    "2023-12-01 00:00:00.0000001,3180,8\r\n"
    "2023-12-01 00:00:01,110,27";

TEST(ArrivalTrace, ReadsGapsOverTheEndOfAMonth) {
  EXPECT_THAT(*parse_arrival_trace(kTrace, 1),
              testing::ElementsAre(Duration(0), Duration(100'000'100), Duration(999'999'900)));
}

TEST(ArrivalTrace, ASpeedShortensEveryGap) {
  EXPECT_THAT(*parse_arrival_trace(kTrace, 10),
              testing::ElementsAre(Duration(0), Duration(10'000'010), Duration(99'999'990)));
}

TEST(ArrivalTrace, NamesTheLineThatIsWrong) {
  EXPECT_THAT(parse_arrival_trace("TIMESTAMP\nyesterday,1\n", 1).error().message,
              testing::HasSubstr("line 2"));
  EXPECT_THAT(parse_arrival_trace("2023-02-30 00:00:00,1\n", 1).error().message,
              testing::HasSubstr("does not begin with a time"));
  EXPECT_THAT(parse_arrival_trace("2023-01-01 00:00:01\n2023-01-01 00:00:00\n", 1).error().message,
              testing::HasSubstr("earlier"));
}

TEST(ArrivalTrace, OneRequestIsNoTrace) {
  EXPECT_FALSE(parse_arrival_trace("TIMESTAMP\n2023-01-01 00:00:00\n", 1).ok());
  EXPECT_FALSE(parse_arrival_trace("", 1).ok());
}

}  // namespace
}  // namespace septet::measure
