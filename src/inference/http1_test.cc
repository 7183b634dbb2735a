#include "inference/http1.h"

#include <gtest/gtest.h>

namespace septet::inference {
namespace {

using State = HeadResult::State;

HeadResult parse(std::string_view text, HttpHead& head) {
  HttpHeadParser parser;
  return parser.parse_request(text, head);
}

unsigned refusal_of(std::string_view text) {
  HttpHead head;
  const HeadResult result = parse(text, head);
  return result.state == State::kRefused ? result.status : 0;
}

TEST(HttpHeadParser, ReadsARequestInPlace) {
  const std::string text =
      "POST /v2/models/m/infer HTTP/1.1\r\nhost: a\r\nContent-Length: 5\r\n"
      "Inference-Header-Content-Length:  12 \r\n\r\nhello";
  HttpHead head;

  const HeadResult result = parse(text, head);

  ASSERT_EQ(result.state, State::kComplete) << result.reason;
  EXPECT_EQ(text.substr(result.head_bytes), "hello");
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/v2/models/m/infer");
  EXPECT_EQ(head.framing, BodyFraming::kLength);
  EXPECT_EQ(head.content_length, 5U);
  EXPECT_EQ(head.find("inference-header-content-length"), "12");
  EXPECT_TRUE(head.keep_alive);
}

TEST(HttpHeadParser, AcceptsAHeadByteByByte) {
  const std::string text = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  HttpHeadParser parser;
  HttpHead head;

  for (std::size_t length = 0; length < text.size(); ++length) {
    const std::string part = text.substr(0, length);
    EXPECT_EQ(parser.parse_request(part, head).state, State::kIncomplete) << length;
  }

  EXPECT_EQ(parser.parse_request(text, head).state, State::kComplete);
}

TEST(HttpHeadParser, SkipsEmptyLinesBeforeARequest) {
  HttpHead head;

  const HeadResult result = parse("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", head);

  EXPECT_EQ(result.state, State::kComplete);
  EXPECT_EQ(head.method, "GET");
}

TEST(HttpHeadParser, RefusesEverySmugglingShape) {
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(refusal_of(post + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n"), 400U);
  EXPECT_EQ(refusal_of(post + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), 400U);
  EXPECT_EQ(refusal_of(post + "Content-Length: +1\r\n\r\n"), 400U);
  EXPECT_EQ(refusal_of(post + "Content-Length: 1, 1\r\n\r\n"), 400U);
  EXPECT_EQ(refusal_of(post + "Content-Length: 99999999999999999999\r\n\r\n"), 400U);
  EXPECT_EQ(refusal_of(post + "Content-Length: 1\t\r\n\r\n"), 400U);
  EXPECT_EQ(refusal_of(post + "Transfer-Encoding: chunked \t\r\n\r\n"), 400U);
  EXPECT_EQ(refusal_of(post + "Transfer-Encoding: xchunked\r\n\r\n"), 501U);
  EXPECT_EQ(refusal_of(post + "Transfer-Encoding : chunked\r\n\r\n"), 400U);
  EXPECT_EQ(refusal_of(post + "X: a\r\n b\r\n\r\n"), 400U);
  EXPECT_EQ(refusal_of(post + "X: a\nContent-Length: 3\r\n\r\n"), 400U);
  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\n\r\n"), 400U);
  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400U);
  EXPECT_EQ(refusal_of("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505U);
  EXPECT_EQ(refusal_of("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"), 505U);
  EXPECT_EQ(refusal_of(std::string("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", 29)), 400U);
}

TEST(HttpHeadParser, BoundsHeadAndFields) {
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(20000, 'a')), 431U);
  std::string many = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 101; ++i) {
    many += "X: 1\r\n";
  }
  EXPECT_EQ(refusal_of(many + "\r\n"), 431U);
}

TEST(HttpHeadParser, ReadsKeepAliveByVersion) {
  HttpHead head;
  parse("GET / HTTP/1.0\r\n\r\n", head);
  EXPECT_FALSE(head.keep_alive);
  parse("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", head);
  EXPECT_TRUE(head.keep_alive);
  parse("GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, close\r\n\r\n", head);
  EXPECT_FALSE(head.keep_alive);
}

TEST(HttpHeadParser, ReadsResponses) {
  HttpHeadParser parser;
  HttpHead head;

  ASSERT_EQ(parser.parse_response("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", head).state,
            State::kComplete);
  EXPECT_EQ(head.status, 200U);
  EXPECT_EQ(head.content_length, 2U);
  parser.parse_response("HTTP/1.1 204 No Content\r\n\r\n", head);
  EXPECT_EQ(head.framing, BodyFraming::kNone);
  parser.parse_response("HTTP/1.1 200 OK\r\n\r\n", head);
  EXPECT_EQ(head.framing, BodyFraming::kUntilClose);
}

std::string decode(std::string_view text, std::size_t step_bytes, bool& done, bool& bad) {
  ChunkedDecoder decoder;
  std::string body;
  done = bad = false;
  std::size_t at = 0;
  while (at < text.size() && !done && !bad) {
    const ChunkedDecoder::Step step = decoder.feed(text.substr(at, step_bytes));
    body += step.data;
    at += step.consumed;
    done = step.done;
    bad = step.bad;
  }
  return body;
}

TEST(ChunkedDecoder, GivesTheSameBodyHoweverItIsCut) {
  const std::string text = "4;a=b\r\nWiki\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\nrest";
  for (std::size_t step = 1; step < text.size(); ++step) {
    bool done = false;
    bool bad = false;
    EXPECT_EQ(decode(text, step, done, bad), "Wiki0123456789") << step;
    EXPECT_TRUE(done);
  }
}

TEST(ChunkedDecoder, RefusesWhatIsNotChunked) {
  for (const char* text :
       {"x\r\n", "\r\n", "-1\r\n", "1\nab", "1\r\nabc\r\n", "0x1\r\na", "0\r\na\r\n\r\n",
        "0\r\n: a\r\n\r\n", "0\r\na b: c\r\n\r\n", "FFFFFFFFFFFFFFFF\r\n", "1 \r\na"}) {
    bool done = false;
    bool bad = false;
    decode(text, 1, done, bad);
    EXPECT_TRUE(bad) << text;
  }
}

TEST(AppendField, WritesALine) {
  std::string out;
  append_status_line(out, 404);
  append_field(out, "Content-Length", 3);
  EXPECT_EQ(out, "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n");
}

}  // namespace
}  // namespace septet::inference
