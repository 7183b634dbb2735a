// Request smuggling: what the proxy passes on is what a second parser (http-parser, as node had it)
// reads in the same bytes; what the two would read differently never reaches a replica.

#include <gtest/gtest.h>
#include <http_parser.h>

#include <mutex>

#include "balance/edge/proxy.h"
#include "base/prng.h"
#include "support/fake_replica.h"
#include "support/raw_client.h"

namespace septet {
namespace {

struct Seen {
  std::string target;
  std::string body;
  bool operator==(const Seen&) const = default;
};

// What http-parser makes of a stream of requests: those it reads whole before it stops.
std::vector<Seen> second_opinion(std::string_view stream) {
  struct State {
    std::vector<Seen> whole;
    Seen now;
  } state;
  http_parser_settings settings;
  http_parser_settings_init(&settings);
  settings.on_message_begin = [](http_parser* parser) {
    static_cast<State*>(parser->data)->now = {};
    return 0;
  };
  settings.on_url = [](http_parser* parser, const char* at, std::size_t length) {
    static_cast<State*>(parser->data)->now.target.append(at, length);
    return 0;
  };
  settings.on_body = [](http_parser* parser, const char* at, std::size_t length) {
    static_cast<State*>(parser->data)->now.body.append(at, length);
    return 0;
  };
  settings.on_message_complete = [](http_parser* parser) {
    auto* const own = static_cast<State*>(parser->data);
    own->whole.push_back(own->now);
    return 0;
  };
  http_parser parser;
  http_parser_init(&parser, HTTP_REQUEST);
  parser.data = &state;
  http_parser_execute(&parser, &settings, stream.data(), stream.size());
  return state.whole;
}

class SmugglingTest : public testing::Test {
 protected:
  SmugglingTest() {
    test::FakeReplica::Options replica;
    replica.listen.unix_path = testing::TempDir() + "/septet_smuggling_" + std::to_string(getpid());
    replica.keep_bodies = true;
    replica_.emplace(replica, [this](const test::FakeRequest& request) {
      if (!request.target.starts_with("/v2/health") && !request.target.ends_with("/config") &&
          !request.target.ends_with("/stats")) {
        const std::lock_guard lock(mutex_);
        seen_.push_back({request.target, request.body});
      }
      return test::FakeAnswer{test::http_reply("{}")};
    });
    balance::ProxyOptions options;
    options.listen = {os::Endpoint{"127.0.0.1", 0, ""}};
    auto proxy = balance::Proxy::start(options, {{"r", replica_->endpoint(), {}}});
    CHECK(proxy.ok());
    proxy_ = std::move(*proxy);
  }

  // What reaches the replica when a client sends the stream and closes its side of it.
  enum class Ends { kByEndRequest, kByClosing };
  std::vector<Seen> reached(std::string_view stream, Ends ends = Ends::kByEndRequest) {
    {
      const std::lock_guard lock(mutex_);
      seen_.clear();
    }
    test::RawClient client(proxy_->endpoint());
    // A last good request marks the end, where the stream leaves the connection usable.
    client.send(std::string(stream) + std::string(kEnd));
    if (ends == Ends::kByClosing) {
      client.finish_sending();  // damage may have left a body that would be waited for
    }
    client.rest();
    // A client that has closed its side is taken to be gone: its last request may still be on its
    // way to the replica, and belongs to this stream, not to the next one.
    while (proxy_->stats().in_flight > 0) {
    }
    const std::lock_guard lock(mutex_);
    std::vector<Seen> seen = seen_;
    std::erase(seen, Seen{"/end", ""});
    return seen;
  }

  static constexpr std::string_view kEnd =
      "POST /end HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
  std::mutex mutex_;
  std::vector<Seen> seen_;
  std::optional<test::FakeReplica> replica_;
  std::unique_ptr<balance::Proxy> proxy_;
};

std::string post(std::string_view fields, std::string_view body) {
  return "POST /first HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n" + std::string(body);
}

TEST_F(SmugglingTest, WhatCanBeReadInTwoWaysReachesNoReplica) {
  const std::string hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string chunk = "0\r\n\r\n";
  for (const std::string& stream : {
           post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", chunk + hidden),
           post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", chunk + hidden),
           post("Content-Length: 0\r\nContent-Length: 5\r\n", chunk + hidden),
           post("Content-Length: 5, 5\r\n", chunk + hidden),
           post("Content-Length: +5\r\n", chunk + hidden),
           post("Content-Length: 0x5\r\n", chunk + hidden),
           post("Content-Length: 5 \t5\r\n", chunk + hidden),
           post("Transfer-Encoding: xchunked\r\n", chunk + hidden),
           post("Transfer-Encoding: chunked, identity\r\n", chunk + hidden),
           post("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", chunk + hidden),
           post("Transfer-Encoding : chunked\r\n", chunk + hidden),
           post("Transfer-Encoding:\x0b"
                "chunked\r\n",
                chunk + hidden),
           post(" Transfer-Encoding: chunked\r\n", chunk + hidden),
           post("X: y\r\n Transfer-Encoding: chunked\r\n", chunk + hidden),
           post("X: y\nTransfer-Encoding: chunked\r\n", chunk + hidden),
           post("X: y\rTransfer-Encoding: chunked\r\n", chunk + hidden),
           post("Content-Length: 5\r\nHost: b\r\n", chunk + hidden),
           post("Transfer-Encoding: chunked\r\n", "5;x=\n0\r\nhello\r\n0\r\n\r\n"),
           post("Transfer-Encoding: chunked\r\n", "0x5\r\nhello\r\n0\r\n\r\n"),
           post("Transfer-Encoding: chunked\r\n", "5\r\nhello0\r\n\r\n"),
           post("Transfer-Encoding: chunked\r\n", "-5\r\nhello\r\n0\r\n\r\n"),
           post("Transfer-Encoding: chunked\r\n", "ffffffffffffffff5\r\nhello\r\n0\r\n\r\n"),
       }) {
    for (const Seen& seen : reached(stream)) {
      ADD_FAILURE() << "passed on " << seen.target << " of:\n" << stream;
    }
  }
}

TEST_F(SmugglingTest, GoodStreamsAreReadAsTheSecondParserReadsThem) {
  for (const std::string& stream : {
           post("Content-Length: 5\r\n", "hello"),
           post("Content-Length:5\r\n", "hello") + post("Content-Length: 2\r\n", "{}"),
           post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
           post("transfer-encoding: Chunked\r\n", "3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n"),
           post("Content-Length: 5\r\nX-Long: " + std::string(2000, 'x') + "\r\n", "hello"),
       }) {
    EXPECT_EQ(reached(stream), second_opinion(stream)) << stream;
  }
}

// Random damage to good streams: whatever still reaches the replica is what the second parser
// reads.
TEST_F(SmugglingTest, DamagedStreamsAreNeverReadDifferently) {
  const std::string good = post("Content-Length: 5\r\nX: y\r\n", "hello") +
                           post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n");
  const std::string_view bytes("\r\n\t :,;0159aAxX\x00\x7f\xff", 17);
  Prng prng(20);
  for (int i = 0; i < 400; ++i) {
    std::string stream = good;
    for (std::uint64_t damage = 0; damage <= prng.below(3); ++damage) {
      const std::size_t at = prng.below(stream.size());
      const char byte = bytes[prng.below(bytes.size())];
      switch (prng.below(3)) {
        case 0:
          stream[at] = byte;
          break;
        case 1:
          stream.insert(at, 1, byte);
          break;
        default:
          stream.erase(at, 1);
          break;
      }
    }
    const std::vector<Seen> passed = reached(stream, Ends::kByClosing);
    const std::vector<Seen> second = second_opinion(stream + std::string(kEnd));
    for (std::size_t k = 0; k < passed.size(); ++k) {
      ASSERT_LT(k, second.size()) << "seed 20, case " << i << ":\n" << stream;
      EXPECT_EQ(passed[k].target, second[k].target) << "seed 20, case " << i << ":\n" << stream;
      EXPECT_EQ(passed[k].body, second[k].body) << "seed 20, case " << i << ":\n" << stream;
    }
  }
}

}  // namespace
}  // namespace septet
