#include "inference/slot_message.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace septet::inference {
namespace {

TEST(SlotMessage, ReadsWhatItWrites) {
  Prng prng(7);
  for (int i = 0; i < 2000; ++i) {
    SlotMessage message;
    message.region_bytes = 1 + prng.below(SlotMessage::kMostRegionBytes);
    message.offset = prng.below(message.region_bytes);
    message.length = 1 + prng.below(message.region_bytes - message.offset);
    std::string text;

    append_slot_message(text, message);

    EXPECT_EQ(parse_slot_message(text), message) << text;
  }
}

TEST(SlotMessage, IsShort) {
  std::string text;

  append_slot_message(text, {std::uint64_t{256} << 20U, 1048640, 602200});

  EXPECT_EQ(text, "1 268435456 1048640 602200");
}

TEST(SlotMessage, RefusesRangesThatLeaveTheRegion) {
  EXPECT_TRUE(parse_slot_message("1 4096 0 4096"));
  EXPECT_TRUE(parse_slot_message("1 4096 4095 1"));
  EXPECT_FALSE(parse_slot_message("1 4096 0 4097"));
  EXPECT_FALSE(parse_slot_message("1 4096 4096 1"));
  EXPECT_FALSE(parse_slot_message("1 4096 4097 0"));
  EXPECT_FALSE(parse_slot_message("1 4096 1 0"));
  EXPECT_FALSE(parse_slot_message("1 4096 18446744073709551615 2"));
  EXPECT_FALSE(parse_slot_message("1 4096 2 18446744073709551615"));
  EXPECT_FALSE(parse_slot_message("1 18446744073709551615 0 1"));
}

TEST(SlotMessage, RefusesWhatItWouldNotWrite) {
  for (const char* const text :
       {"", "1", "1 ", "2 4096 0 1", "11 4096 0 1", "1 4096 0", "1 4096 0 1 ", "1 4096 0 1 0",
        "1  4096 0 1", "1 4096 00 1", "1 4096 -0 1", "1 +4096 0 1", "1 0x10 0 1", " 1 4096 0 1",
        "1 4096 0 18446744073709551616", "1,4096,0,1", "1\t4096\t0\t1"}) {
    EXPECT_FALSE(parse_slot_message(text)) << text;
  }
}

TEST(SlotMessage, KnowsItsFieldsInAnyCase) {
  EXPECT_TRUE(is_slot_field("septet-slot"));
  EXPECT_TRUE(is_slot_field("SEPTET-SLOTS"));
  EXPECT_FALSE(is_slot_field("septet-timeout-ms"));
  EXPECT_FALSE(is_slot_field("septet-slow"));
}

}  // namespace
}  // namespace septet::inference
