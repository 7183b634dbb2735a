// dispatch_table [REQUESTS [SEEDS]]: the balancer's dispatcher in simulation, as tables in
// Markdown.
//
// Prints what docs/measurements/dispatch.md holds: policies by law and load, unequal speeds with
// known and with learned speeds, closed loop, a slow replica, and the cost of the round trip.

#include <fmt/format.h>

#include "base/text.h"
#include "queueing.h"

namespace septet::simulation {
namespace {

using balance::Policy;

struct Column {
  const char* name;
  Policy policy;
  std::uint32_t bound = 1;
  bool oracle = false;
  bool learns = false;
};

constexpr Column kRoundRobin{"RR", Policy::kRoundRobin};
constexpr Column kLeast{"LO", Policy::kLeastOutstanding};
constexpr Column kDelay{"SED", Policy::kShortestExpectedDelay};
constexpr Column kOne{"pull 1", Policy::kPull, 1};
constexpr Column kTwo{"pull 2", Policy::kPull, 2};
constexpr Column kLearned{"pull 1, learned", Policy::kPull, 1, false, true};
constexpr Column kOracle{"oracle", Policy::kPull, 1, true};

class Tables {
 public:
  Tables(std::uint64_t requests, std::uint32_t seeds) : requests_(requests), seeds_(seeds) {}

  void open_loop(const char* title, const std::vector<double>& speeds,
                 const std::vector<Column>& columns) const {
    head(title, "law, rho", columns);
    for (const Law law : {Law::kDeterministic, Law::kJitter, Law::kExponential, Law::kBimodal}) {
      for (const double rho : {.5, .7, .9, .95}) {
        fmt::print("| {} {} |", to_string(law), rho);
        for (const Column& column : columns) {
          if (column.policy == Policy::kRoundRobin && speeds.front() < speeds.back() && rho > .57) {
            fmt::print(" unstable |");
            continue;
          }
          QueueingSetting setting = base(column, law, speeds);
          setting.rho = rho;
          const QueueingFigures f = simulate_seeds(setting, seeds_);
          fmt::print(" {:.2f}/{:.2f}/{:.2f}/{:.2f} |", f.p50, f.p90, f.p99, f.mean);
        }
        fmt::print("\n");
      }
    }
  }

  void closed_loop(const char* title, const std::vector<double>& speeds,
                   const std::vector<Column>& columns, bool knows_speed) const {
    head(title, "N", columns);
    for (const std::uint32_t clients : {1U, 4U, 7U, 8U, 14U, 28U, 100U}) {
      fmt::print("| {} |", clients);
      for (const Column& column : columns) {
        QueueingSetting setting = base(column, Law::kJitter, speeds);
        setting.clients = clients;
        setting.knows_speed = knows_speed;
        const QueueingFigures f = simulate_seeds(setting, seeds_);
        fmt::print(" {:.2f}/{:.2f}/{:.2f} |", f.throughput, f.p90, f.p99);
      }
      fmt::print("\n");
    }
  }

  void round_trip() const {
    const std::vector<Column> columns = {
        kRoundRobin, kLeast, kOne, kTwo, {"pull, by rule", Policy::kPull, 0, false, true}};
    head("Round trip: one-way delay in S, jit, p90/p99", "rho, delay", columns);
    for (const double rho : {.7, .9}) {
      for (const double delay : {0.0, .0025, .01, .02, .05, .10}) {
        fmt::print("| {} {} |", rho, delay);
        for (const Column& column : columns) {
          if (column.bound == 1 && column.policy == Policy::kPull && rho * (1 + 2 * delay) >= 1) {
            fmt::print(" unstable |");
            continue;
          }
          QueueingSetting setting = base(column, Law::kJitter, std::vector<double>(7, 1.0));
          setting.rho = rho;
          setting.delay = delay;
          const QueueingFigures f = simulate_seeds(setting, seeds_);
          fmt::print(" {:.2f}/{:.2f} |", f.p90, f.p99);
        }
        fmt::print("\n");
      }
    }
  }

  // What the round trip takes from a closed loop, all on their way as far and as long as each
  // other.
  void closed_round_trip(const std::vector<double>& one_slow) const {
    const std::vector<Column> columns = {kRoundRobin, kOne, kTwo};
    head("Closed loop with a round trip, jit, throughput/p90", "replicas, N, one-way delay in S",
         columns);
    for (const bool slow : {false, true}) {
      for (const std::uint32_t clients : {7U, 14U}) {
        for (const double delay : {0.0, .0025, .005, .01, .02}) {
          fmt::print("| {}, {}, {} |", slow ? "one slow" : "equal", clients, delay);
          for (const Column& column : columns) {
            QueueingSetting setting =
                base(column, Law::kJitter, slow ? one_slow : std::vector<double>(7, 1.0));
            setting.clients = clients;
            setting.delay = delay;
            setting.knows_speed = !slow;
            const QueueingFigures f = simulate_seeds(setting, seeds_);
            fmt::print(" {:.2f}/{:.2f} |", f.throughput, f.p90);
          }
          fmt::print("\n");
        }
      }
    }
  }

  // Both tables of hedging: stalls at all replicas, at one.
  void hedging() const {
    for (const std::uint32_t stalling : {7U, 1U}) {
      fmt::print("\n### Hedging, jit, stalls of 20 S at {} of 7 replicas, p99/p99.9/sent twice\n\n",
                 stalling);
      fmt::print("| load | none | p90 | p95 | p99 |\n|---|---|---|---|---|\n");
      for (const double rho : {.3, .5, .7, .8}) {
        fmt::print("| {} |", rho);
        for (const double percentile : {0.0, .9, .95, .99}) {
          QueueingSetting setting = with_stalls(stalling, percentile);
          setting.rho = rho;
          const QueueingFigures figures = simulate_seeds(setting, seeds_);
          fmt::print(" {:.2f}/{:.2f}/{:.1f} % |", figures.p99, figures.p999, 100 * figures.hedged);
        }
        fmt::print("\n");
      }
    }
  }

  void closed_hedging() const {
    fmt::print(
        "\n### Hedging, closed loop, stalls of 20 S at 7 of 7 replicas, throughput/p99\n\n"
        "| N | none | p95 |\n|---|---|---|\n");
    for (const std::uint32_t clients : {4U, 7U, 14U, 28U}) {
      fmt::print("| {} |", clients);
      for (const double percentile : {0.0, .95}) {
        QueueingSetting setting = with_stalls(7, percentile);
        setting.clients = clients;
        const QueueingFigures figures = simulate_seeds(setting, seeds_);
        fmt::print(" {:.2f}/{:.2f} |", figures.throughput, figures.p99);
      }
      fmt::print("\n");
    }
  }

 private:
  QueueingSetting with_stalls(std::uint32_t stalling, double percentile) const {
    QueueingSetting setting;
    setting.bound = 0;
    setting.learns_speed = true;
    setting.knows_speed = false;
    setting.law = Law::kJitter;
    setting.delay = 0.002;
    setting.stalling = stalling;
    setting.stall_share = stalling == 1 ? 0.05 : 0.01;
    setting.hedge_percentile = percentile;
    setting.requests = requests_;
    return setting;
  }
  QueueingSetting base(const Column& column, Law law, const std::vector<double>& speeds) const {
    QueueingSetting setting;
    setting.policy = column.policy;
    setting.bound = column.bound;
    setting.oracle = column.oracle;
    setting.learns_speed = column.learns;
    setting.knows_speed = !column.learns;
    setting.law = law;
    setting.speeds = speeds;
    setting.requests = requests_;
    return setting;
  }
  static void head(const char* title, const char* first, const std::vector<Column>& columns) {
    fmt::print("\n### {}\n\n| {} |", title, first);
    for (const Column& column : columns) {
      fmt::print(" {} |", column.name);
    }
    fmt::print("\n|---|");
    for (std::size_t i = 0; i < columns.size(); ++i) {
      fmt::print("---|");
    }
    fmt::print("\n");
  }

  std::uint64_t requests_;
  std::uint32_t seeds_;
};

}  // namespace
}  // namespace septet::simulation

int main(int argc, char** argv) {
  using namespace septet::simulation;
  const auto number = [&](int index, std::int64_t otherwise) {
    return argc > index ? septet::parse_int(argv[index]).value_or(otherwise) : otherwise;
  };
  const Tables tables(static_cast<std::uint64_t>(number(1, 300'000)),
                      static_cast<std::uint32_t>(number(2, 3)));
  const std::vector<double> equal(7, 1.0);
  const std::vector<double> mixed = {1, 1, 2, 3};
  std::vector<double> one_slow = equal;
  one_slow.front() = 0.3;
  const Column random{"random", septet::balance::Policy::kRandom};
  const Column two{"P2C", septet::balance::Policy::kPowerOfTwo};
  tables.open_loop("Open loop, 7 equal replicas, p50/p90/p99/mean in S", equal,
                   {kRoundRobin, random, two, kLeast, kOne, kTwo});
  tables.open_loop("Open loop, speeds 1, 1, 2, 3, p50/p90/p99/mean in S", mixed,
                   {kRoundRobin, kLeast, kDelay, kOne, kTwo, kLearned, kOracle});
  tables.closed_loop("Closed loop, 7 equal replicas, jit, throughput/p90/p99", equal,
                     {kRoundRobin, kLeast, kOne, kTwo}, true);
  tables.closed_loop("Closed loop, one of 7 at 0.3, nobody told, jit, throughput/p90/p99", one_slow,
                     {kRoundRobin, kLeast, kOne, kTwo, kLearned}, false);
  tables.round_trip();
  tables.closed_round_trip(one_slow);
  tables.hedging();
  tables.closed_hedging();
  return 0;
}
