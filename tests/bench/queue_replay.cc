// queue_replay KIND MEAN_MS REPLICAS RATE SECONDS { GENERATOR_SEED SERVER_SEED }...
//
// What a generator of Poisson load (septet perf --seed GENERATOR_SEED) that measures for so long
// would see of simulated_v2_server KIND MEAN_MS REPLICAS SERVER_SEED if neither cost any time: the
// same schedule, the same drawn service times, exact arithmetic. One line for each pair of seeds:
// the latencies of the requests that end within SECONDS, in nanoseconds.

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/prng.h"
#include "base/text.h"
#include "measure/load_schedule.h"
#include "support/replica_queue.h"
#include "support/service_draw.h"

namespace {

using septet::Duration;

struct Queue {
  septet::test::ServiceDraw draw;
  double mean_s = 0;
  int replicas = 0;
  double rate = 0;
  Duration length{};
};

void replay(const Queue& queue, std::uint64_t generator_seed, std::uint64_t server_seed) {
  septet::measure::LoadSchedule schedule =
      septet::measure::LoadSchedule::poisson(queue.rate, generator_seed);
  septet::Prng prng(server_seed);
  septet::test::ReplicaQueue replicas(queue.replicas);
  std::string line;
  for (Duration due = schedule.next(); due <= queue.length; due = schedule.next()) {
    const Duration end = replicas.serve(due, septet::from_seconds(queue.mean_s * queue.draw(prng)));
    if (end <= queue.length) {
      line += fmt::format("{} ", (end - due).count());
    }
  }
  fmt::print("{}\n", line);
}

int usage() {
  fmt::print(stderr,
             "usage: queue_replay deterministic|exponential MEAN_MS REPLICAS RATE SECONDS "
             "{{GENERATOR_SEED SERVER_SEED}}...\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 7 || words.size() % 2 == 0) {
    return usage();
  }
  const std::optional<septet::test::ServiceDraw> draw = septet::test::service_draw(words[0]);
  std::vector<double> numbers;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::optional<double> number = septet::parse_double(words[i]);
    if (!number || *number <= 0) {
      return usage();
    }
    numbers.push_back(*number);
  }
  if (!draw) {
    return usage();
  }
  const Queue queue{*draw, numbers[0] / 1e3, static_cast<int>(numbers[1]), numbers[2],
                    septet::from_seconds(numbers[3])};
  for (std::size_t i = 4; i + 1 < numbers.size(); i += 2) {
    replay(queue, static_cast<std::uint64_t>(numbers[i]),
           static_cast<std::uint64_t>(numbers[i + 1]));
  }
  return 0;
}
