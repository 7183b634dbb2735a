#include "balance/known_head.h"

#include <gtest/gtest.h>

namespace septet::balance {
namespace {

constexpr std::string_view kHead =
    "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nEmpty:\r\nContent-Length: 2\r\n\r\n";

inference::HttpHead parsed(std::string_view bytes) {
  inference::HttpHead head;
  inference::HttpHeadParser parser;
  EXPECT_EQ(parser.parse_request(bytes, head).state, inference::HeadResult::State::kComplete);
  return head;
}

TEST(KnownHead, BeginsOnlyWhatHasAllItsBytes) {
  KnownHead known;
  inference::HttpHead head = parsed(kHead);

  EXPECT_FALSE(known.begins(kHead));
  known.keep(kHead, head);

  EXPECT_TRUE(known.begins(kHead));
  EXPECT_TRUE(known.begins(std::string(kHead) + "{}"));
  EXPECT_FALSE(known.begins(kHead.substr(0, kHead.size() - 1)));
  std::string other(kHead);
  other[other.size() - 5] = '3';  // the length of the body
  EXPECT_FALSE(known.begins(other));
}

TEST(KnownHead, TheHeadOutlivesTheBytesItCameFrom) {
  KnownHead known;
  std::string buffer(kHead);
  inference::HttpHead head = parsed(buffer);

  known.keep(buffer, head);
  buffer.assign(buffer.size(), 'x');

  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/v2/models/m/infer");
  EXPECT_EQ(head.find("host"), "a");
  EXPECT_EQ(head.find("empty"), "");
}

TEST(KnownHead, ALargeHeadIsNotKeptAndTheOneBeforeForgotten) {
  KnownHead known;
  inference::HttpHead head = parsed(kHead);
  known.keep(kHead, head);
  const std::string large =
      "GET / HTTP/1.1\r\nHost: a\r\nCookie: " + std::string(2000, 'c') + "\r\n\r\n";
  head = parsed(large);

  known.keep(large, head);

  EXPECT_FALSE(known.begins(large));
  EXPECT_FALSE(known.begins(kHead));
  EXPECT_EQ(head.find("host"), "a");
}

}  // namespace
}  // namespace septet::balance
