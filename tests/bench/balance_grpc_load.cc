// balance_grpc_load ENDPOINT CONNECTIONS CALLS_EACH CALLS INPUT_BYTES: a closed loop of gRPC calls;
// prints one line of JSON.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "support/grpc_loop.h"

int main(int argc, char** argv) {
  using namespace septet;
  if (argc != 6) {
    fmt::print(stderr,
               "usage: balance_grpc_load ENDPOINT CONNECTIONS CALLS_EACH CALLS INPUT_BYTES\n");
    return 2;
  }
  const auto endpoint = os::parse_endpoint(argv[1], 8000);
  const auto number = [&](int index) {
    return static_cast<std::size_t>(parse_uint(argv[index]).value_or(1));
  };
  if (!endpoint.ok()) {
    fmt::print(stderr, "balance_grpc_load: {}\n", endpoint.error().text());
    return 2;
  }
  test::GrpcLoadResult result =
      test::run_grpc_load({.target = *endpoint,
                           .connections = number(2),
                           .calls_each = number(3),
                           .calls = number(4),
                           .message = test::grpc_infer_message("m", number(5)),
                           .give_up = seconds(300)});
  std::sort(result.latencies.begin(), result.latencies.end());
  const auto us = [&result](double q) {
    const auto count = static_cast<double>(result.latencies.size());
    return result.latencies.empty()
               ? 0
               : to_microseconds(result.latencies[static_cast<std::size_t>(q * count)]);
  };
  fmt::print(
      "{{\"answered\":{},\"failed\":{},\"per_second\":{:.1f},\"p50_us\":{:.1f},"
      "\"p90_us\":{:.1f},\"p99_us\":{:.1f}}}\n",
      result.answered, result.failed,
      static_cast<double>(result.answered) / to_seconds(result.elapsed), us(.5), us(.9), us(.99));
  return result.failed == 0 ? 0 : 1;
}
