#include "measure/trace_request.h"

#include <gmock/gmock.h>

namespace septet::measure {
namespace {

using testing::HasSubstr;

TEST(TraceRequest, SaysOnlyWhatWasSaid) {
  TraceRequest request;
  EXPECT_TRUE(request.empty());
  EXPECT_EQ(trace_setting_json(request), "{}");

  request.levels = {"TIMESTAMPS", "TENSORS"};
  request.rate = "10";

  EXPECT_FALSE(request.empty());
  EXPECT_EQ(trace_setting_json(request),
            R"({"trace_level":["TIMESTAMPS","TENSORS"],"trace_rate":"10"})");
}

TEST(TraceRequest, NumbersAndLevelsAreChecked) {
  TraceRequest good;
  good.levels = {"OFF"};
  good.rate = "1";
  good.count = "-1";
  good.log_frequency = "0";
  TraceRequest level;
  level.levels = {"LOUD"};
  TraceRequest rate;
  rate.rate = "0";
  TraceRequest count;
  count.count = "-2";
  TraceRequest frequency;
  frequency.log_frequency = "often";

  EXPECT_TRUE(check_trace(good).ok());
  EXPECT_THAT(check_trace(level).error().message, HasSubstr("--trace-level 'LOUD'"));
  EXPECT_THAT(check_trace(rate).error().message, HasSubstr("--trace-rate '0'"));
  EXPECT_THAT(check_trace(count).error().message, HasSubstr("--trace-count '-2'"));
  EXPECT_THAT(check_trace(frequency).error().message, HasSubstr("--log-frequency 'often'"));
}

}  // namespace
}  // namespace septet::measure
