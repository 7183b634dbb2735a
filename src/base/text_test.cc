#include "base/text.h"

#include <gtest/gtest.h>

namespace septet {
namespace {

TEST(Split, KeepsEmptyPieces) {
  const auto pieces = split("a,,b", ',');

  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[1], "");
}

TEST(ParseUint, RefusesSignsBlanksAndOverflow) {
  EXPECT_EQ(parse_uint("18446744073709551615"), 18446744073709551615U);
  EXPECT_FALSE(parse_uint("18446744073709551616"));
  EXPECT_FALSE(parse_uint("-1"));
  EXPECT_FALSE(parse_uint("+1"));
  EXPECT_FALSE(parse_uint(" 1"));
  EXPECT_FALSE(parse_uint(""));
}

TEST(ParseDouble, RefusesInfinity) {
  EXPECT_EQ(parse_double("1.5"), 1.5);
  EXPECT_FALSE(parse_double("inf"));
}

TEST(NearestName, FindsTheTypoAndNotTheStranger) {
  const std::vector<std::string> names = {"A100-SXM4-40GB", "H200"};

  EXPECT_EQ(nearest_name("A100-SXM-40GB", names), "A100-SXM4-40GB");
  EXPECT_FALSE(nearest_name("zebra-crossing", names));
}

TEST(DecodeBase64, ReadsWithAndWithoutPaddingAndNothingElse) {
  const auto text = [](std::string_view encoded) {
    const auto bytes = decode_base64(encoded);
    return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "?";
  };

  EXPECT_EQ(text("bW9kZWw="), "model");
  EXPECT_EQ(text("bW9kZWw"), "model");
  EXPECT_EQ(text(""), "");
  EXPECT_EQ(text("bW9k ZWw="), "?");
}

TEST(JoinWords, ReadsAsEnglish) { EXPECT_EQ(join_words({"a", "b", "c"}), "a, b and c"); }

}  // namespace
}  // namespace septet
