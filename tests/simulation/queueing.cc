#include "queueing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <numeric>
#include <queue>

#include "balance/dispatcher.h"
#include "base/check.h"
#include "base/prng.h"

namespace septet::simulation {

namespace {

using balance::Dispatcher;
using balance::ReplicaIndex;
using balance::Ticket;

double standard_normal(Prng& prng) {
  // Box-Muller; the second value is not kept, so that draws stay in step.
  const double radius = std::sqrt(2 * prng.exponential());
  return radius * std::cos(2 * M_PI * prng.uniform());
}

// A service of mean 1.
double draw(Law law, Prng& prng) {
  switch (law) {
    case Law::kDeterministic:
      return 1;
    case Law::kJitter: {
      const double sum = prng.uniform() + prng.uniform() + prng.uniform();
      return (1 + 0.2 * (sum - 1.5)) * (prng.chance(0.01) ? 3 : 1) / 1.02;
    }
    case Law::kExponential:
      return prng.exponential();
    case Law::kBimodal:
      return prng.chance(0.9) ? 0.5 : 5.5;
    case Law::kLogNormal: {
      const double variance = std::log(5.0);
      return std::exp(-variance / 2 + std::sqrt(variance) * standard_normal(prng));
    }
  }
  return 1;
}

enum class Kind { kArrival, kReachesReplica, kServed, kNoticed };

struct Event {
  double at = 0;
  std::uint64_t order = 0;
  Kind kind = Kind::kArrival;
  std::uint32_t job = 0;
  bool operator>(const Event& other) const {
    return at != other.at ? at > other.at : order > other.order;
  }
};

struct Job {
  double arrived = 0;
  double size = 0;
  std::uint32_t replica = 0;
  Ticket ticket;
};

struct Server {
  std::deque<std::uint32_t> queue;
  bool busy = false;
  double free_at = 0;  // for the oracle: when all its work is done
};

class Simulation {
 public:
  explicit Simulation(const QueueingSetting& setting)
      : setting_(setting),
        arrivals_(setting.seed),
        sizes_(setting.seed + 1'000'003),
        dispatcher_(options(setting)),
        model_(dispatcher_.add_model()),
        servers_(setting.speeds.size()) {
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      const ReplicaIndex replica = dispatcher_.add_replica(Instant{});
      dispatcher_.next_probe(Instant{});
      dispatcher_.probe_succeeded(replica);
      if (setting.knows_speed) {
        dispatcher_.set_speed(replica, model_, setting.speeds[i]);
      }
    }
    dispatcher_.set_round_trip(from_seconds(2 * setting.delay));
  }

  QueueingFigures run() {
    latencies_.reserve(setting_.requests);
    if (setting_.clients > 0) {
      for (std::uint32_t i = 0; i < setting_.clients; ++i) {
        schedule(0, Kind::kArrival, 0);
      }
    } else {
      schedule(next_gap(), Kind::kArrival, 0);
    }
    while (latencies_.size() < setting_.requests && !events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      handle(event);
    }
    return figures();
  }

 private:
  static Dispatcher::Options options(const QueueingSetting& setting) {
    Dispatcher::Options options;
    options.policy = setting.policy;
    options.fixed_bound = setting.bound;
    options.max_queued = ~0U;
    options.max_outstanding = ~0U;
    options.learn_speed = setting.learns_speed;
    options.seed = setting.seed;
    return options;
  }
  static Instant instant(double at) { return Instant(from_seconds(at)); }

  void schedule(double at, Kind kind, std::uint32_t job) {
    events_.push({at, ++order_, kind, job});
  }
  double next_gap() {
    const double capacity = std::accumulate(setting_.speeds.begin(), setting_.speeds.end(), 0.0);
    return arrivals_.exponential() / (setting_.rho * capacity);
  }

  void handle(const Event& event) {
    switch (event.kind) {
      case Kind::kArrival:
        arrive();
        break;
      case Kind::kReachesReplica:
        servers_[jobs_[event.job].replica].queue.push_back(event.job);
        serve(jobs_[event.job].replica);
        break;
      case Kind::kServed:
        servers_[jobs_[event.job].replica].busy = false;
        schedule(now_ + setting_.delay, Kind::kNoticed, event.job);
        serve(jobs_[event.job].replica);
        break;
      case Kind::kNoticed:
        notice(event.job);
        break;
    }
    if (!setting_.oracle) {
      pump();
    }
  }

  void arrive() {
    std::uint32_t job = 0;
    if (free_jobs_.empty()) {
      job = static_cast<std::uint32_t>(jobs_.size());
      jobs_.emplace_back();
    } else {
      job = free_jobs_.back();
      free_jobs_.pop_back();
    }
    jobs_[job] = Job{now_, draw(setting_.law, sizes_), 0, Ticket{}};
    if (setting_.clients == 0) {
      schedule(now_ + next_gap(), Kind::kArrival, 0);
    }
    if (setting_.oracle) {
      send(job, least_finish(job));
      return;
    }
    Dispatcher::Arrival arrival;
    arrival.model = model_;
    arrival.deadline = instant(now_ + 1e6);  // equal for all: the order of arrival
    arrival.cookie = job;
    CHECK(!dispatcher_.arrive(instant(now_), arrival).refused);
  }

  std::uint32_t least_finish(std::uint32_t job) {
    std::uint32_t best = 0;
    double best_at = 0;
    for (std::uint32_t i = 0; i < servers_.size(); ++i) {
      const double at = std::max(now_, servers_[i].free_at) + jobs_[job].size / setting_.speeds[i];
      if (i == 0 || at < best_at) {
        best = i;
        best_at = at;
      }
    }
    servers_[best].free_at = best_at;
    return best;
  }

  void pump() {
    while (const auto assignment = dispatcher_.next(instant(now_))) {
      const auto job = static_cast<std::uint32_t>(assignment->cookie);
      jobs_[job].ticket = assignment->ticket;
      send(job, assignment->replica.value());
    }
  }

  void send(std::uint32_t job, std::uint32_t replica) {
    jobs_[job].replica = replica;
    schedule(now_ + setting_.delay, Kind::kReachesReplica, job);
  }

  void serve(std::uint32_t replica) {
    Server& server = servers_[replica];
    if (server.busy || server.queue.empty()) {
      return;
    }
    const std::uint32_t job = server.queue.front();
    server.queue.pop_front();
    server.busy = true;
    schedule(now_ + jobs_[job].size / setting_.speeds[replica], Kind::kServed, job);
  }

  void notice(std::uint32_t job) {
    if (!setting_.oracle) {
      dispatcher_.completed(instant(now_), jobs_[job].ticket);
    }
    latencies_.push_back(now_ - jobs_[job].arrived);
    if (latencies_.size() == setting_.requests / 10) {
      measured_from_ = now_;
    }
    free_jobs_.push_back(job);
    if (setting_.clients > 0) {
      schedule(now_, Kind::kArrival, 0);
    }
  }

  QueueingFigures figures() {
    const auto drop = static_cast<std::ptrdiff_t>(latencies_.size() / 10);
    std::vector<double> sorted(latencies_.begin() + drop, latencies_.end());
    std::sort(sorted.begin(), sorted.end());
    const auto count = static_cast<double>(sorted.size());
    const auto at = [&](double q) { return sorted[static_cast<std::size_t>(q * count)]; };
    const double sum = std::accumulate(sorted.begin(), sorted.end(), 0.0);
    return {at(.5), at(.9), at(.99), sum / count, count / (now_ - measured_from_)};
  }

  QueueingSetting setting_;
  Prng arrivals_;
  Prng sizes_;
  Dispatcher dispatcher_;
  balance::ModelIndex model_;
  std::vector<Server> servers_;
  std::vector<Job> jobs_;
  std::vector<std::uint32_t> free_jobs_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  double now_ = 0;
  double measured_from_ = 0;
  std::vector<double> latencies_;
};

}  // namespace

const char* to_string(Law law) {
  switch (law) {
    case Law::kDeterministic:
      return "det";
    case Law::kJitter:
      return "jit";
    case Law::kExponential:
      return "exp";
    case Law::kBimodal:
      return "bim";
    case Law::kLogNormal:
      return "logn";
  }
  return "";
}

QueueingFigures simulate(const QueueingSetting& setting) { return Simulation(setting).run(); }

QueueingFigures simulate_seeds(QueueingSetting setting, std::uint32_t seeds) {
  QueueingFigures total;
  for (std::uint32_t i = 0; i < seeds; ++i, ++setting.seed) {
    const QueueingFigures one = simulate(setting);
    total.p50 += one.p50 / seeds;
    total.p90 += one.p90 / seeds;
    total.p99 += one.p99 / seeds;
    total.mean += one.mean / seeds;
    total.throughput += one.throughput / seeds;
  }
  return total;
}

}  // namespace septet::simulation
