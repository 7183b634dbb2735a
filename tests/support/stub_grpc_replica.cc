// stub_grpc_replica HTTP_ENDPOINT GRPC_ENDPOINT [REPLY_BYTES]: a replica without a model that
// speaks both protocols, for tests and benches of the balancer. HTTP answers questions about its
// health, and calls in slots as septet serve does; gRPC answers every call with REPLY_BYTES at
// once.

#include <fmt/format.h>

#include <csignal>

#include "balance/grpc_route.h"
#include "base/text.h"
#include "support/fake_grpc_replica.h"
#include "support/fake_replica.h"

int main(int argc, char** argv) {
  using namespace septet;
  if (argc < 3) {
    fmt::print(stderr, "usage: stub_grpc_replica HTTP_ENDPOINT GRPC_ENDPOINT [REPLY_BYTES]\n");
    return 2;
  }
  const auto http = os::parse_endpoint(argv[1], 0);
  const auto grpc = os::parse_endpoint(argv[2], 0);
  if (!http.ok() || !grpc.ok()) {
    fmt::print(stderr, "stub_grpc_replica: {}\n", (http.ok() ? grpc.error() : http.error()).text());
    return 2;
  }
  const std::size_t bytes = argc > 3 ? parse_uint(argv[3]).value_or(64) : 64;
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const std::string reply = balance::framed_message(std::string(bytes, 'y'));
  const test::FakeGrpcReplica calls(
      *grpc, [&reply](const test::FakeCall&) { return test::FakeCallAnswer{reply}; });
  const std::string in_slots = test::slot_call_reply("0", std::string(bytes, 'y'));
  const test::FakeReplica questions(
      {.listen = *http, .slots = true, .slot_calls = true},
      [&in_slots](const test::FakeRequest& request) {
        return test::FakeAnswer{request.in_slot ? in_slots : test::http_reply("{}")};
      });
  fmt::print("{} {}\n", questions.endpoint().text(), calls.endpoint().text());
  std::fflush(stdout);
  int received = 0;
  sigwait(&ends, &received);
  return 0;
}
