// stub_replica: a v2 server without a model, for tests and benches of the balancer.
//
//   stub_replica ENDPOINT [REPLY_BYTES [SERVICE_US]]
//
// Answers every POST with REPLY_BYTES after SERVICE_US of (timer) service, one at a time.

#include <fmt/format.h>

#include <csignal>

#include "base/text.h"
#include "support/fake_replica.h"

namespace septet::test {
namespace {

int run(int argc, char** argv) {
  const auto number = [&](int index, std::int64_t otherwise) {
    return argc > index ? parse_int(argv[index]).value_or(otherwise) : otherwise;
  };
  if (argc < 2) {
    fmt::print(stderr, "usage: stub_replica ENDPOINT [REPLY_BYTES [SERVICE_US]]\n");
    return 2;
  }
  const Result<os::Endpoint> endpoint = os::parse_endpoint(argv[1], 0);
  if (!endpoint.ok()) {
    fmt::print(stderr, "stub_replica: {}\n", endpoint.error().text());
    return 2;
  }
  const std::string reply = http_reply(std::string(static_cast<std::size_t>(number(2, 1024)), 'y'),
                                       "application/octet-stream");
  const Duration service = microseconds(number(3, 0));
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const FakeReplica replica({.listen = *endpoint}, [&](const FakeRequest& request) {
    const bool infer = request.method == "POST";
    return FakeAnswer{infer ? reply : http_reply("{}"), infer ? service : Duration::zero()};
  });
  fmt::print("{}\n", replica.endpoint().text());
  std::fflush(stdout);
  int received = 0;
  sigwait(&ends, &received);
  return 0;
}

}  // namespace
}  // namespace septet::test

int main(int argc, char** argv) { return septet::test::run(argc, argv); }
