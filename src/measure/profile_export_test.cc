#include "measure/profile_export.h"

#include <gtest/gtest.h>

namespace septet::measure {
namespace {

Instant at(std::int64_t ns) { return Instant{} + Duration(ns); }

TEST(ProfileExport, ALevelHasItsRequestsAndWindows) {
  LevelTimes times;
  times.requests = {{at(5), at(9), 0}, {at(6), at(11), 3}};
  times.boundaries = {at(1), at(20)};

  EXPECT_EQ(std::string(kProfileBegin) +
                profile_level({LoadMode::kConcurrency, 4}, times, 1'700'000'000'000'000'000) +
                profile_end("1.2"),
            R"({"experiments":[{"experiment":{"mode":"concurrency","value":4},"requests":[)"
            R"({"timestamp":1700000000000000005,"response_timestamps":[1700000000000000009]},)"
            R"({"timestamp":1700000000000000006,"sequence_id":3,)"
            R"("response_timestamps":[1700000000000000011]}],)"
            R"("window_boundaries":[1700000000000000001,1700000000000000020]}],"version":"1.2"})");
}

TEST(ProfileExport, AnOpenLoopIsARequestRate) {
  EXPECT_EQ(profile_level({LoadMode::kIntervals, 54.5}, {}, 0),
            R"({"experiment":{"mode":"request_rate","value":54.5},"requests":[],)"
            R"("window_boundaries":[]})");
}

}  // namespace
}  // namespace septet::measure
