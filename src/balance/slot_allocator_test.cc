#include "balance/slot_allocator.h"

#include <gtest/gtest.h>

#include <map>

#include "base/prng.h"

namespace septet::balance {
namespace {

constexpr std::size_t kUnit = 64 * 1024;
constexpr std::size_t kRegion = 64 * kUnit;

TEST(SlotAllocator, GivesASlotThatIsLargeEnoughAndAligned) {
  SlotAllocator slots(kRegion, kUnit);

  const auto small = slots.take(1);
  const auto picture = slots.take(602'112);

  ASSERT_TRUE(small && picture);
  EXPECT_EQ(small->bytes, kUnit);
  EXPECT_EQ(picture->bytes, std::size_t{1} << 20U);
  EXPECT_EQ(picture->offset % picture->bytes, 0U);
  EXPECT_EQ(slots.used_bytes(), small->bytes + picture->bytes);
  EXPECT_EQ(slots.used_slots(), 2U);
}

TEST(SlotAllocator, HasNothingWhenAllIsTaken) {
  SlotAllocator slots(kRegion, kUnit);
  for (std::size_t i = 0; i < kRegion / kUnit; ++i) {
    ASSERT_TRUE(slots.take(kUnit));
  }

  EXPECT_FALSE(slots.take(1));
  slots.give_back(5 * kUnit);
  EXPECT_FALSE(slots.take(kUnit + 1));
  EXPECT_EQ(slots.take(1)->offset, 5 * kUnit);
}

TEST(SlotAllocator, NeverHasWhatIsLargerThanTheRegion) {
  SlotAllocator slots(kRegion, kUnit);

  EXPECT_FALSE(slots.take(kRegion + 1));
  EXPECT_FALSE(slots.fits(kRegion + 1));
  EXPECT_TRUE(slots.take(kRegion));
}

TEST(SlotAllocator, ASharedSlotIsFreeWhenItsLastUserGivesItBack) {
  SlotAllocator slots(kRegion, kUnit);
  const std::size_t offset = slots.take(kRegion)->offset;
  slots.share(offset);

  slots.give_back(offset);
  EXPECT_FALSE(slots.take(1));
  slots.give_back(offset);
  EXPECT_TRUE(slots.take(1));
}

TEST(SlotAllocator, UsesTheSameMemoryAgain) {
  SlotAllocator slots(kRegion, kUnit);
  const std::size_t first = slots.take(602'112)->offset;
  slots.give_back(first);

  EXPECT_EQ(slots.take(602'112)->offset, first);
}

TEST(SlotAllocator, SlotsNeverOverlapAndTheRegionIsWholeAgainInTheEnd) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Prng prng(seed);
    SlotAllocator slots(kRegion, kUnit);
    std::map<std::size_t, std::pair<std::size_t, int>> taken;  // offset: size, users
    std::size_t used = 0;
    for (int i = 0; i < 3000; ++i) {
      const std::size_t wanted = 1 + prng.below(std::size_t{kUnit} << prng.below(7));
      if (taken.empty() || prng.below(2) == 0) {
        const auto slot = slots.take(wanted);
        if (!slot) {
          continue;
        }
        ASSERT_GE(slot->bytes, wanted);
        const auto above = taken.lower_bound(slot->offset);
        ASSERT_TRUE(above == taken.end() || above->first >= slot->offset + slot->bytes);
        ASSERT_TRUE(above == taken.begin() ||
                    std::prev(above)->first + std::prev(above)->second.first <= slot->offset);
        ASSERT_LE(slot->offset + slot->bytes, kRegion);
        taken[slot->offset] = {slot->bytes, 1};
        used += slot->bytes;
      } else {
        const auto one =
            std::next(taken.begin(), static_cast<std::ptrdiff_t>(prng.below(taken.size())));
        if (prng.below(4) == 0) {
          slots.share(one->first);
          ++one->second.second;
          continue;
        }
        slots.give_back(one->first);
        if (--one->second.second == 0) {
          used -= one->second.first;
          taken.erase(one);
        }
      }
      ASSERT_EQ(slots.used_bytes(), used) << "seed " << seed;
      ASSERT_EQ(slots.used_slots(), taken.size()) << "seed " << seed;
    }
    for (const auto& [offset, slot] : taken) {
      for (int user = 0; user < slot.second; ++user) {
        slots.give_back(offset);
      }
    }
    EXPECT_EQ(slots.take(kRegion)->offset, 0U) << "seed " << seed;
  }
}

}  // namespace
}  // namespace septet::balance
