// stub_replica: a v2 server without a model, for tests and benches of the balancer.
//
//   stub_replica ENDPOINT [REPLY_BYTES [SERVICE_US [SEED]]] [slots|shared]
//
// Answers every POST with REPLY_BYTES after SERVICE_US of (timer) service, one at a time. With a
// seed the service varies as a real one does: +-30 %, one in a hundred three times as long, same
// mean. With the word `slots` it takes bodies in shared memory as septet serve does, with `shared`
// as Triton does.

#include <fmt/format.h>

#include <csignal>
#include <optional>

#include "base/prng.h"
#include "base/text.h"
#include "support/fake_replica.h"

namespace septet::test {
namespace {

int run(int argc, char** argv) {
  const std::string_view last = argv[argc - 1];
  const bool slots = last == "slots";
  const bool shared = last == "shared";
  argc -= slots || shared ? 1 : 0;
  const auto number = [&](int index, std::int64_t otherwise) {
    return argc > index ? parse_int(argv[index]).value_or(otherwise) : otherwise;
  };
  if (argc < 2) {
    fmt::print(stderr,
               "usage: stub_replica ENDPOINT [REPLY_BYTES [SERVICE_US [SEED]]] [slots|shared]\n");
    return 2;
  }
  const Result<os::Endpoint> endpoint = os::parse_endpoint(argv[1], 0);
  if (!endpoint.ok()) {
    fmt::print(stderr, "stub_replica: {}\n", endpoint.error().text());
    return 2;
  }
  const std::string reply = http_reply(std::string(static_cast<std::size_t>(number(2, 1024)), 'y'),
                                       "application/octet-stream");
  const double service_us = static_cast<double>(number(3, 0));
  std::optional<Prng> prng;
  if (argc > 4) {
    prng.emplace(static_cast<std::uint64_t>(number(4, 1)));
  }
  const auto service = [&prng, service_us] {
    const double sum = prng ? prng->uniform() + prng->uniform() + prng->uniform() : 1.5;
    const double hiccup = prng && prng->chance(0.01) ? 3 : 1;
    const double mean = prng ? 1.02 : 1;
    return from_seconds(service_us * 1e-6 * (1 + 0.2 * (sum - 1.5)) * hiccup / mean);
  };
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const FakeReplica replica({.listen = *endpoint, .slots = slots}, [&](const FakeRequest& request) {
    const bool infer = request.method == "POST";
    if (shared && request.target == "/v2") {
      return FakeAnswer{http_reply(R"({"extensions":["system_shared_memory"]})")};
    }
    return FakeAnswer{infer ? reply : http_reply("{}"), infer ? service() : Duration::zero()};
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
