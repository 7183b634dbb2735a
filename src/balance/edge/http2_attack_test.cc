// HTTP/2 clients that mean harm: frame by frame, past any library's good manners.

#include <gtest/gtest.h>

#include <atomic>

#include "balance/edge/proxy.h"
#include "balance/grpc_route.h"
#include "support/fake_grpc_replica.h"
#include "support/fake_replica.h"
#include "support/grpc_loop.h"
#include "support/raw_client.h"

namespace septet::balance {
namespace {

enum FrameType : char {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kContinuation = 9
};
constexpr char kEndStream = 1;
constexpr char kEndHeaders = 4;

std::string frame(FrameType type, char flags, std::uint32_t stream, std::string_view payload) {
  std::string out;
  for (unsigned shift = 24; shift > 0; shift -= 8) {
    out += static_cast<char>(payload.size() >> (shift - 8) & 0xFFU);
  }
  out += {static_cast<char>(type), flags};
  for (unsigned shift = 32; shift > 0; shift -= 8) {
    out += static_cast<char>(stream >> (shift - 8) & 0xFFU);
  }
  return out.append(payload);
}

// HPACK's literal without indexing, lengths below 127.
std::string field(std::string_view name, std::string_view value) {
  std::string out(1, '\0');
  out += static_cast<char>(name.size());
  out += name;
  out += static_cast<char>(value.size());
  return out.append(value);
}

const std::string kBegin = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, 0, 0, "");

std::string head() {
  return field(":method", "POST") + field(":scheme", "http") +
         field(":path", "/inference.GRPCInferenceService/ModelInfer") + field(":authority", "a") +
         field("content-type", "application/grpc") + field("te", "trailers");
}

// The error codes of all GOAWAY and RST_STREAM frames in what the proxy sent.
std::vector<std::pair<FrameType, int>> errors_in(std::string_view bytes) {
  std::vector<std::pair<FrameType, int>> errors;
  const auto byte = [&bytes](std::size_t at) { return static_cast<std::uint8_t>(bytes[at]); };
  while (bytes.size() >= 9) {
    const std::size_t length = (byte(0) << 16U) + (byte(1) << 8U) + byte(2);
    if (bytes.size() < 9 + length) {
      break;
    }
    if (bytes[3] == kReset) {
      errors.emplace_back(kReset, byte(9 + 3));
    } else if (bytes[3] == kGoAway) {
      errors.emplace_back(kGoAway, byte(9 + 7));
    }
    bytes.remove_prefix(9 + length);
  }
  return errors;
}

class Http2AttackTest : public testing::Test {
 protected:
  Http2AttackTest()
      : grpc_({"", 0, path("grpc")},
              [](const test::FakeCall&) { return test::FakeCallAnswer{framed_message("")}; }),
        http_({.listen = {"", 0, path("http")}}, [this](const test::FakeRequest& request) {
          http_requests_ += request.target == "/v2/health/ready" ? 0 : 1;
          return test::FakeAnswer{test::http_reply("{}")};
        }) {
    ProxyOptions options;
    options.listen = {os::Endpoint{"127.0.0.1", 0, ""}};
    auto proxy = Proxy::start(
        options,
        {{.name = "r", .endpoint = http_.endpoint(), .models = {}, .grpc = grpc_.endpoint()}});
    EXPECT_TRUE(proxy.ok());
    proxy_ = std::move(*proxy);
  }
  static std::string path(std::string_view what) {
    return testing::TempDir() + "/septet_http2_attack_" + std::to_string(getpid()) + "_" +
           std::string(what);
  }
  // What the proxy says to those bytes until it closes.
  std::vector<std::pair<FrameType, int>> errors_of(const std::string& bytes) {
    test::RawClient client(proxy_->endpoint());
    client.send(bytes);
    client.finish_sending();
    return errors_in(client.rest());
  }
  void expect_calm(const std::string& flood) {
    constexpr int kEnhanceYourCalm = 11;
    const auto errors = errors_of(kBegin + flood);
    // Whoever sends on after that may lose it to the reset that follows.
    if (!errors.empty()) {
      EXPECT_EQ(errors.back(), (std::pair<FrameType, int>(kGoAway, kEnhanceYourCalm)));
    }
    expect_served();
  }
  void expect_served() {
    const test::GrpcLoadResult result = test::run_grpc_load(
        {.target = proxy_->endpoint(), .message = test::grpc_infer_message("m", 10)});
    EXPECT_EQ(result.failed, 0U) << result.last_message;
    const ProxyStats stats = proxy_->stats();
    EXPECT_EQ(stats.in_flight + stats.queued, 0U);
  }

  // Whether the request was reset or refused, and no replica heard of it.
  void expect_refused(const std::string& frames) {
    test::RawClient client(proxy_->endpoint());
    client.send(kBegin + frames);
    client.finish_sending();
    const std::string said = client.rest();
    EXPECT_TRUE(!errors_in(said).empty() || said.find("{\"error\":") != std::string::npos);
    EXPECT_EQ(http_requests_, 0U);
  }

  std::atomic<std::uint64_t> http_requests_ = 0;
  test::FakeGrpcReplica grpc_;
  test::FakeReplica http_;
  std::unique_ptr<Proxy> proxy_;
};

TEST_F(Http2AttackTest, RapidResetEndsTheConnectionAndHardlyReachesTheReplica) {
  std::string flood;
  for (std::uint32_t stream = 1; stream < 40'000; stream += 2) {
    flood += frame(kHeaders, kEndHeaders, stream, head()) +
             frame(kData, kEndStream, stream, test::grpc_infer_message("m", 10)) +
             frame(kReset, 0, stream, std::string("\0\0\0\x08", 4));
  }

  expect_calm(flood);

  EXPECT_LT(grpc_.calls(), 2000U);
}

TEST_F(Http2AttackTest, SettingsPingsAndEmptyDataEndTheConnection) {
  std::string settings;
  std::string pings;
  std::string data = frame(kHeaders, kEndHeaders, 1, head());
  for (int i = 0; i < 20'000; ++i) {
    settings += frame(kSettings, 0, 0, "");
    pings += frame(kPing, 0, 0, "12345678");
    data += frame(kData, 0, 1, "");
  }

  expect_calm(settings);
  expect_calm(pings);
  expect_calm(data);
}

TEST_F(Http2AttackTest, AHeadWithoutEndEndsTheConnection) {
  std::string flood = frame(kHeaders, 0, 1, head());
  for (int i = 0; i < 20'000; ++i) {
    flood += frame(kContinuation, 0, 1, field("x", "y"));
  }

  const auto errors = errors_of(kBegin + flood);

  EXPECT_TRUE(errors.empty() || errors.back().first == kGoAway);
  expect_served();
}

TEST_F(Http2AttackTest, AHeadOverTheLimitIsReset) {
  std::string large = head();
  for (int i = 0; i < 400; ++i) {
    large += field("x-" + std::to_string(i), std::string(100, 'y'));
  }
  std::string stream = frame(kHeaders, 0, 1, large.substr(0, 16'000));
  stream += frame(kContinuation, 0, 1, large.substr(16'000, 16'000));
  stream += frame(kContinuation, kEndHeaders, 1, large.substr(32'000));

  const auto errors = errors_of(kBegin + stream);

  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(errors.front().first, kReset);
  EXPECT_EQ(grpc_.calls(), 0U);
  expect_served();
}

TEST_F(Http2AttackTest, MoreStreamsThanAllowedEndTheConnection) {
  std::string many;
  for (std::uint32_t stream = 1; stream < 2 * 300; stream += 2) {
    many += frame(kHeaders, kEndHeaders, stream, head());
  }

  const auto errors = errors_of(kBegin + frame(kSettings, 1, 0, "") + many);

  EXPECT_FALSE(errors.empty());
  EXPECT_EQ(grpc_.calls(), 0U);
  expect_served();
}

TEST_F(Http2AttackTest, ACallThatIsCutAtAnyByteLeavesNothingBehind) {
  const std::string whole = kBegin + frame(kHeaders, kEndHeaders, 1, head()) +
                            frame(kData, kEndStream, 1, test::grpc_infer_message("m", 10));
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) {
    test::RawClient client(proxy_->endpoint());
    client.send(whole.substr(0, bytes));
  }

  while (proxy_->stats().connections > 0) {
  }
  expect_served();
}

// An ordinary request without its path and fields.
std::string ordinary() {
  return field(":method", "POST") + field(":scheme", "http") + field(":authority", "a");
}

TEST_F(Http2AttackTest, WhatHttp1WouldReadDifferentlyReachesNoReplica) {
  using namespace std::string_literals;
  const std::string good = ordinary() + field(":path", "/x");
  for (const std::string& fields : {
           field("transfer-encoding", "chunked"),
           field("connection", "transfer-encoding"),
           field("upgrade", "h2c"),
           field("te", "gzip"),
           field("Content-Length", "1"),
           field("content-length", "1") + field("content-length", "2"),
           field("content-length", "x"),
           field("x", "y\r\nTransfer-Encoding: chunked"),
           field("x", "y\0z"s),
           field("x: y", "z"),
           field("host", "b"),
           field(":path", "/y"),
           field(":unknown", "y"),
           field("x", "y") + field(":path", "/y"),
       }) {
    expect_refused(frame(kHeaders, kEndHeaders | kEndStream, 1, good + fields));
  }
  for (const std::string path : {"", "x", "*", "/x y", "http://b/x", "/x HTTP/1.1\r\nX: y"}) {
    expect_refused(frame(kHeaders, kEndHeaders | kEndStream, 1, ordinary() + field(":path", path)));
  }
  expect_served();
}

TEST_F(Http2AttackTest, ABodyOfAnotherLengthThanAnnouncedReachesNoReplica) {
  const std::string announced = ordinary() + field(":path", "/x") + field("content-length", "5");

  expect_refused(frame(kHeaders, kEndHeaders | kEndStream, 1, announced));
  expect_refused(frame(kHeaders, kEndHeaders, 1, announced) + frame(kData, kEndStream, 1, "abc"));
  expect_refused(frame(kHeaders, kEndHeaders, 1, announced) + frame(kData, 0, 1, "abcdefgh"));
  expect_refused(frame(kHeaders, kEndHeaders, 1, announced) + frame(kData, 0, 1, "abc") +
                 frame(kHeaders, kEndHeaders | kEndStream, 1, field("x-trailer", "1")));
  expect_served();
}

TEST_F(Http2AttackTest, AnOrdinaryRequestThatIsCutAtAnyByteLeavesNothingBehind) {
  const std::string whole =
      kBegin +
      frame(kHeaders, kEndHeaders, 1,
            ordinary() + field(":path", "/x") + field("content-length", "70")) +
      frame(kData, 0, 1, std::string(40, 'x')) + frame(kData, kEndStream, 1, std::string(30, 'x'));
  for (std::size_t bytes = 1; bytes <= whole.size(); ++bytes) {
    test::RawClient client(proxy_->endpoint());
    client.send(whole.substr(0, bytes));
  }

  while (proxy_->stats().connections > 0) {
  }
  expect_served();
}

TEST_F(Http2AttackTest, RapidResetOfOrdinaryRequestsEndsTheConnection) {
  std::string flood;
  for (std::uint32_t stream = 1; stream < 40'000; stream += 2) {
    flood += frame(kHeaders, kEndHeaders | kEndStream, stream, ordinary() + field(":path", "/x")) +
             frame(kReset, 0, stream, std::string("\0\0\0\x08", 4));
  }

  expect_calm(flood);

  EXPECT_LT(http_requests_, 2000U);
}

}  // namespace
}  // namespace septet::balance
