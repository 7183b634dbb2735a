#include "balance/flood_guard.h"

#include <gtest/gtest.h>

namespace septet::balance {
namespace {

// How many such frames are admitted at once.
std::size_t admitted(Http2Frame frame) {
  FloodGuard guard(Instant{});
  std::size_t count = 0;
  while (count < 100'000 && guard.admit(Instant{}, frame, 0)) {
    ++count;
  }
  return count;
}

TEST(FloodGuard, StopsFloodsOfFramesThatCarryNothing) {
  EXPECT_LE(admitted(Http2Frame::kReset), 1000U);
  EXPECT_LE(admitted(Http2Frame::kSettings), 50U);
  EXPECT_LE(admitted(Http2Frame::kPing), 500U);
  EXPECT_LE(admitted(Http2Frame::kEmptyData), 1000U);
  EXPECT_LE(admitted(Http2Frame::kContinuation), 20U);
}

TEST(FloodGuard, StopsDataThatIsDribbledByteByByte) {
  FloodGuard guard(Instant{});
  int frames = 0;
  while (frames < 1'000'000 && guard.admit(Instant{}, Http2Frame::kData, 1)) {
    ++frames;
  }
  EXPECT_LT(frames, 100'000);
}

TEST(FloodGuard, StopsRapidResetAtAnyRateThatHurts) {
  FloodGuard guard(Instant{});
  Instant now{};
  std::size_t calls = 0;
  while (calls < 100'000 && guard.admit(now, Http2Frame::kHead, 0) &&
         guard.admit(now, Http2Frame::kReset, 0)) {
    now += microseconds(1000);
    ++calls;
  }
  EXPECT_LT(calls, 1000U);
}

TEST(FloodGuard, LetsAnHonestClientGoOnForEver) {
  FloodGuard guard(Instant{});
  for (int call = 0; call < 1'000'000; ++call) {  // no time passes at all
    ASSERT_TRUE(guard.admit(Instant{}, Http2Frame::kHead, 100));
    ASSERT_TRUE(guard.admit(Instant{}, Http2Frame::kData, 1000));
    ASSERT_TRUE(guard.admit(Instant{}, Http2Frame::kEmptyData, 0));
    ASSERT_TRUE(guard.admit(Instant{}, Http2Frame::kOther, 4));
    guard.call_ended();
  }
}

TEST(FloodGuard, LetsALargeReplyBeReadThroughSmallWindows) {
  FloodGuard guard(Instant{});
  for (int window = 0; window < 100'000; ++window) {
    guard.data_sent(16 * 1024);
    ASSERT_TRUE(guard.admit(Instant{}, Http2Frame::kOther, 4));
    ASSERT_TRUE(guard.admit(Instant{}, Http2Frame::kOther, 4));
  }
}

}  // namespace
}  // namespace septet::balance
