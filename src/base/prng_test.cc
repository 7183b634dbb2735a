#include "base/prng.h"

#include <gtest/gtest.h>

namespace septet {
namespace {

TEST(Prng, SameSeedGivesTheSameSequence) {
  Prng a(7);
  Prng b(7);

  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(a.next(), b.next());
  }
}

TEST(Prng, ExponentialHasMeanOne) {
  Prng prng(1);
  double sum = 0;
  constexpr int kCount = 200000;

  for (int i = 0; i < kCount; ++i) {
    sum += prng.exponential();
  }

  EXPECT_NEAR(sum / kCount, 1.0, 0.01);
}

TEST(Prng, BelowStaysBelowAndReachesEveryValue) {
  Prng prng(3);
  bool seen[5] = {};

  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = prng.below(5);
    ASSERT_LT(value, 5U);
    seen[value] = true;
  }

  for (const bool reached : seen) {
    EXPECT_TRUE(reached);
  }
}

}  // namespace
}  // namespace septet
