#include "balance/upstream_change.h"

#include <gtest/gtest.h>

namespace septet::balance {
namespace {

using Lines = std::vector<std::string>;

Result<Lines> after(const Lines& lines, std::string_view method, std::string_view body) {
  const Result<UpstreamChange> change = parse_upstream_change(method, body);
  return change.ok() ? apply_change(lines, *change) : change.error();
}

TEST(UpstreamChange, ReplacesAddsAndRemoves) {
  const Lines lines = {"unix:/a name=first models=m", "10.0.0.7:8000"};

  EXPECT_EQ(*after(lines, "PUT", R"({"upstreams":[" unix:/b "]})"), Lines{"unix:/b"});
  EXPECT_EQ(*after(lines, "POST", R"({"upstreams":["unix:/b","10.0.0.7:8000"]})"),
            (Lines{"unix:/a name=first models=m", "10.0.0.7:8000", "unix:/b"}));
  for (const char* called : {"first", "unix:/a", "unix:/a name=first models=m"}) {
    EXPECT_EQ(*after(lines, "DELETE", std::string(R"({"upstreams":[")") + called + R"("]})"),
              Lines{"10.0.0.7:8000"})
        << called;
  }
}

TEST(UpstreamChange, WhatIsNotThereIsNotRemoved) {
  const auto lines = after({"unix:/a name=first"}, "DELETE", R"({"upstreams":["first","fir"]})");

  ASSERT_FALSE(lines.ok());
  EXPECT_EQ(lines.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(lines.error().message.find("'fir'"), std::string::npos);
}

TEST(UpstreamChange, SaysHowItIsWritten) {
  for (const char* body :
       {"", "[]", "{}", R"({"upstreams":"a"})", R"({"upstreams":[]})", R"({"upstreams":[1]})",
        R"({"upstreams":["a\nb"]})", R"({"upstreams":[" "]})", R"({"upstreams":["a"],"x":1})"}) {
    const auto lines = after({}, "PUT", body);
    ASSERT_FALSE(lines.ok()) << body;
    EXPECT_EQ(lines.error().kind, ErrorKind::kUsage) << body;
    EXPECT_FALSE(lines.error().hint.empty()) << body;
  }
  EXPECT_FALSE(after({}, "PATCH", R"({"upstreams":["a"]})").ok());
}

}  // namespace
}  // namespace septet::balance
