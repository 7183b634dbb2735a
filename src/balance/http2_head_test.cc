#include "balance/http2_head.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "balance/forwarded_head.h"
#include "base/prng.h"

namespace septet::balance {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

const Fields kGood = {{":method", "POST"},
                      {":scheme", "http"},
                      {":authority", "gpu:8000"},
                      {":path", "/v2/models/m/infer"}};

FieldList list_of(const Fields& fields) {
  FieldList list;
  for (const auto& [name, value] : fields) {
    list.add(name, value);
  }
  return list;
}

Fields good_and(const Fields& more) {
  Fields fields = kGood;
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

// The request line and fields as a replica gets them; empty when refused.
std::string passed_on(const Fields& fields) {
  const FieldList list = list_of(fields);
  std::string memory;
  inference::HttpHead head;
  if (read_http2_head(list, memory, head)) {
    return {};
  }
  std::string out;
  append_request_head(out, head, std::nullopt);
  return out;
}

TEST(Http2Head, IsWhatHttp1WouldHaveBrought) {
  const Fields fields =
      good_and({{"cookie", "a=1"}, {"x", "y z"}, {"cookie", "b=2"}, {"te", "trailers"}, {"e", ""}});

  EXPECT_EQ(passed_on(fields),
            "POST /v2/models/m/infer HTTP/1.1\r\nHost: gpu:8000\r\ncookie: a=1; b=2\r\nx: y z\r\n"
            "e: \r\n\r\n");
}

TEST(Http2Head, TakesHostInPlaceOfTheAuthorityOrBesideTheSame) {
  const Fields host = {{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {"host", "gpu"}};

  EXPECT_EQ(passed_on(host), "GET / HTTP/1.1\r\nHost: gpu\r\n\r\n");
  EXPECT_FALSE(passed_on(good_and({{"host", "GPU:8000"}})).empty());
  EXPECT_TRUE(passed_on(good_and({{"host", "other"}})).empty());
}

TEST(Http2Head, KnowsTheBodysLengthOrLeavesItOpen) {
  inference::HttpHead head;
  std::string memory;
  const FieldList open = list_of(kGood);
  const FieldList known = list_of(good_and({{"content-length", "12"}, {"expect", "100-continue"}}));

  EXPECT_FALSE(read_http2_head(open, memory, head));
  EXPECT_EQ(head.framing, inference::BodyFraming::kChunked);
  EXPECT_FALSE(read_http2_head(known, memory, head));
  EXPECT_EQ(head.framing, inference::BodyFraming::kLength);
  EXPECT_EQ(head.content_length, 12U);
  EXPECT_TRUE(head.expect_continue);
}

TEST(Http2Head, RefusesWhatAReplicaCouldReadDifferently) {
  using namespace std::string_literals;
  for (const Fields& more : std::vector<Fields>{
           {{"connection", "close"}},
           {{"keep-alive", "5"}},
           {{"proxy-connection", "close"}},
           {{"transfer-encoding", "chunked"}},
           {{"upgrade", "h2c"}},
           {{"te", "gzip"}},
           {{"Content-Length", "5"}},
           {{"content-length", "5"}, {"content-length", "5"}},
           {{"content-length", "5, 5"}},
           {{"content-length", "+5"}},
           {{"content-length", "-5"}},
           {{"content-length", ""}},
           {{"content-length", "99999999999999999999"}},
           {{"x", "y\r\nTransfer-Encoding: chunked"}},
           {{"x", "y\nz"}},
           {{"x", "y\rz"}},
           {{"x", "y\0z"s}},
           {{"x", " y"}},
           {{"x", "y\t"}},
           {{"x\r\ny", "z"}},
           {{"x: y", "z"}},
           {{"x y", "z"}},
           {{"", "z"}},
           {{"cookie", "a\r\nb"}},
           {{"host", "gpu:8000"}, {"host", "gpu:8000"}},
           {{"host", ""}},
           {{"x", "y"}, {":authority", "late"}},
           {{":method", "GET"}},
           {{":path", "/other"}},
           {{":protocol", "websocket"}},
           {{":status", "200"}},
       }) {
    EXPECT_EQ(passed_on(good_and(more)), "") << more.back().first << "=" << more.back().second;
  }
  for (const auto& [name, value] : Fields{{":method", "GET /x"},
                                          {":method", "G\nT"},
                                          {":method", ""},
                                          {":path", ""},
                                          {":path", "/a HTTP/1.1\r\nX: y"},
                                          {":path", "/a b"},
                                          {":path", "/a\t"},
                                          {":scheme", ""},
                                          {":authority", "user@gpu"},
                                          {":authority", "a b"},
                                          {":authority", "a\r\nX: y"}}) {
    Fields fields = kGood;
    for (auto& [own, text] : fields) {
      text = own == name ? value : text;
    }
    EXPECT_EQ(passed_on(fields), "") << name << "=" << value;
  }
  for (std::size_t i = 0; i < kGood.size(); ++i) {
    Fields fields = kGood;
    fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_EQ(passed_on(fields), "") << kGood[i].first;
  }
}

// Whatever is not refused is one request to a strict parser of HTTP/1.1, and says the same to it.
TEST(Http2Head, DamagedFieldsAreRefusedOrReadAlike) {
  Prng prng(5);
  const std::string_view bytes("\r\n\t :,;@/0aA\x00\x7f\xff", 15);
  int passed = 0;
  for (int i = 0; i < 20'000; ++i) {
    Fields fields =
        good_and({{"content-length", "5"}, {"x", "y z"}, {"cookie", "a"}, {"cookie", "b"}});
    auto& [name, value] = fields[prng.below(fields.size())];
    std::string& text = prng.below(4) == 0 ? name : value;
    text.insert(prng.below(text.size() + 1), 1, bytes[prng.below(bytes.size())]);

    const std::string out = passed_on(fields);

    if (!out.empty()) {
      ++passed;
      inference::HttpHeadParser parser;
      inference::HttpHead head;
      const auto result = parser.parse_request(out, head);
      ASSERT_EQ(result.state, inference::HeadResult::State::kComplete) << "seed 5: " << out;
      ASSERT_EQ(result.head_bytes, out.size()) << "seed 5: " << out;
      ASSERT_EQ(head.framing, inference::BodyFraming::kNone) << "seed 5: " << out;
      ASSERT_LE(head.fields.size(), 5U) << "seed 5: " << out;
    }
  }
  EXPECT_GT(passed, 100);
}

}  // namespace
}  // namespace septet::balance
