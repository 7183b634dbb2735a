// What the proxy's tests share: a proxy over fake replicas, and verbs of a client. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "balance/edge/proxy.h"
#include "support/closed_loop.h"
#include "support/fake_replica.h"
#include "support/raw_client.h"

namespace septet::balance {

using test::FakeAnswer;
using test::FakeReplica;
using test::FakeRequest;
using test::http_reply;
using test::RawClient;

inline const os::Endpoint kAnyPort{"127.0.0.1", 0, ""};

// A proxy over fake replicas on Unix sockets.
class ProxyTest : public testing::Test {
 protected:
  FakeReplica& add_replica(FakeReplica::Script script, FakeReplica::Options options = {}) {
    options.listen.unix_path = testing::TempDir() + "/septet_proxy_" + std::to_string(getpid()) +
                               "_" + std::to_string(replicas_.size());
    // The proxy's own questions are answered here, so that a script sees the client's requests
    // only.
    const auto guarded = [script = std::move(script)](const FakeRequest& request) {
      if (request.target == "/v2/health/ready") {
        return FakeAnswer{http_reply("")};
      }
      return request.target.ends_with("/config") ? FakeAnswer{http_reply("{}")} : script(request);
    };
    replicas_.push_back(std::make_unique<FakeReplica>(options, guarded));
    return *replicas_.back();
  }
  std::vector<Upstream> upstreams() const {
    std::vector<Upstream> all;
    for (const auto& replica : replicas_) {
      all.push_back({replica->endpoint().text(), replica->endpoint(), {}});
    }
    return all;
  }
  void start(ProxyOptions options = {}) {
    options.listen = {kAnyPort};
    Result<std::unique_ptr<Proxy>> proxy = Proxy::start(std::move(options), upstreams());
    ASSERT_TRUE(proxy.ok()) << proxy.error().text();
    proxy_ = std::move(*proxy);
  }
  std::string ask(std::string_view request) {
    RawClient client(proxy_->endpoint());
    client.send(request);
    return client.reply();
  }

  std::vector<std::unique_ptr<FakeReplica>> replicas_;
  std::unique_ptr<Proxy> proxy_;
};

inline constexpr std::string_view kInfer =
    "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";

inline FakeAnswer answer_ok(const FakeRequest& /*request*/) { return {http_reply("{\"ok\":1}")}; }

}  // namespace septet::balance
