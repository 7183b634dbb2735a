#include "serve/service_time.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace septet::serve {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kTable =
    "# synthetic\nmodel,slice,batch,latency_us\ndense,1g,1,1000\ndense,1g,4,2500\nother,1g,1,9\n";

TEST(ServiceTimes, InterpolatesBetweenBatchesAndScalesBeyond) {
  const auto times = ServiceTimes::parse(kTable, "dense");

  ASSERT_TRUE(times.ok()) << times.error().text();
  EXPECT_EQ(times->time("1g", 1).value(), microseconds(1000));
  EXPECT_EQ(times->time("1g", 2).value(), microseconds(1500));
  EXPECT_EQ(times->time("1g.5gb", 4).value(), microseconds(2500));
  EXPECT_EQ(times->time("1g", 8).value(), microseconds(5000));
}

TEST(ServiceTimes, SaysWhatIsMissingOrWrong) {
  EXPECT_THAT(ServiceTimes::parse(kTable, "none").error().message, HasSubstr("'none'"));
  EXPECT_THAT(ServiceTimes::parse(kTable, "dense")->time("7g", 1).error().text(),
              HasSubstr("measured are 1g"));
  EXPECT_THAT(
      ServiceTimes::parse("model,slice,batch,latency_us\ndense,1g,0,5\n", "dense").error().message,
      HasSubstr("line 2"));
}

TEST(ServiceTimes, TheSameSeedVariesTheSameWayAroundTheSameMean) {
  const TimeVariation variation{.jitter = 0.2, .stall_chance = 0, .stall = {}};
  Prng a(7);
  Prng b(7);
  double sum = 0;
  constexpr int kDraws = 20'000;

  for (int i = 0; i < kDraws; ++i) {
    const Duration drawn = vary(milliseconds(10), variation, a);
    EXPECT_EQ(drawn, vary(milliseconds(10), variation, b));
    sum += to_seconds(drawn);
  }

  EXPECT_NEAR(sum / kDraws, 0.010, 0.0002);
}

TEST(ServiceTimes, StallsAsOftenAsTold) {
  const TimeVariation variation{.jitter = 0, .stall_chance = 0.25, .stall = seconds(1)};
  Prng prng(1);
  int stalls = 0;

  for (int i = 0; i < 10'000; ++i) {
    stalls += vary(milliseconds(1), variation, prng) > seconds(1) ? 1 : 0;
  }

  EXPECT_NEAR(stalls, 2500, 150);
}

TEST(ServiceTimes, ReadsThePublishedProfilesInPlace) {
  const char* shared = std::getenv("SEPTET_SHARED");
  const std::filesystem::path root = shared != nullptr ? shared : "../shared";
  std::ifstream file(root / "data/parvagpu/prof_data/densenet121.csv");
  if (!file) {
    GTEST_SKIP() << "no profiles under " << root;
  }
  std::ostringstream text;
  text << file.rdbuf();

  const auto times = ServiceTimes::parse(text.str(), "densenet121");

  ASSERT_TRUE(times.ok()) << times.error().text();
  EXPECT_LT(times->time("7g", 32).value(), times->time("1g", 32).value());
  EXPECT_LT(times->time("1g", 1).value(), times->time("1g", 64).value());
}

}  // namespace
}  // namespace septet::serve
