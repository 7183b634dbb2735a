// simulated_v2_server [zero | deterministic MS | exponential MS] [REPLICAS [SEED [SPIN_US]]]
//
// A v2 server with known service times, for benchmarks of clients: it spins SPIN_US (0) before the
// end of each, so that it ends on time. Prints its address and serves the model "simulated" until
// its standard input ends.

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/text.h"
#include "support/service_draw.h"
#include "support/simulated_server.h"

namespace {

using septet::Duration;
using septet::Prng;

int usage() {
  fmt::print(stderr,
             "usage: simulated_v2_server [zero | deterministic MS | exponential MS] [REPLICAS "
             "[SEED [SPIN_US]]]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  septet::test::ServerBehaviour behaviour;
  std::size_t next = 1;
  const std::string kind = words.empty() ? "zero" : words[0];
  if (septet::test::service_draw(kind)) {
    const auto ms = septet::parse_double(words.size() > 1 ? words[1] : "");
    if (!ms || *ms <= 0) {
      return usage();
    }
    const double mean_s = *ms / 1e3;
    next = 2;
    behaviour.service_time = [draw = *septet::test::service_draw(kind), mean_s](auto, Prng& prng) {
      return septet::from_seconds(mean_s * draw(prng));
    };
  } else if (kind != "zero") {
    return usage();
  }
  const auto number = [&](std::size_t index, std::uint64_t otherwise) {
    return words.size() > index ? septet::parse_uint(words[index]).value_or(0) : otherwise;
  };
  behaviour.replicas = static_cast<int>(number(next, 1));
  behaviour.seed = number(next + 1, 1);
  behaviour.spin = septet::microseconds(static_cast<std::int64_t>(number(next + 2, 0)));
  if (behaviour.replicas < 1) {
    return usage();
  }
  const septet::test::SimulatedServer server(behaviour);
  fmt::print("{}\n", server.endpoint().text());
  std::fflush(stdout);
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
