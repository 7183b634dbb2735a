// balance_load ENDPOINT CONNECTIONS REQUESTS BODY_BYTES: a closed loop; prints one line of JSON.

#include <fmt/format.h>

#include "base/text.h"
#include "support/closed_loop.h"

int main(int argc, char** argv) {
  using namespace septet;
  if (argc != 5) {
    fmt::print(stderr, "usage: balance_load ENDPOINT CONNECTIONS REQUESTS BODY_BYTES\n");
    return 2;
  }
  const auto endpoint = os::parse_endpoint(argv[1], 8000);
  const auto number = [&](int index) {
    return static_cast<std::size_t>(parse_uint(argv[index]).value_or(1));
  };
  if (!endpoint.ok()) {
    fmt::print(stderr, "balance_load: {}\n", endpoint.error().text());
    return 2;
  }
  const test::ClosedLoopResult result = test::run_closed_loop(
      {*endpoint, number(2), number(3), test::infer_request("m", number(4)), seconds(300)});
  const auto us = [&result](double q) { return to_microseconds(result.percentile(q)); };
  fmt::print(
      "{{\"answered\":{},\"failed\":{},\"per_second\":{:.1f},\"p50_us\":{:.1f},"
      "\"p90_us\":{:.1f},\"p99_us\":{:.1f}}}\n",
      result.answered, result.failed, result.per_second(), us(.5), us(.9), us(.99));
  return result.failed == 0 ? 0 : 1;
}
