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

enum class Kind { kArrival, kReachesReplica, kServed, kNoticed, kTimer };

struct Event {
  double at = 0;
  std::uint64_t order = 0;
  Kind kind = Kind::kArrival;
  std::uint32_t copy = 0;
  bool operator>(const Event& other) const {
    return at != other.at ? at > other.at : order > other.order;
  }
};

struct Job {
  double arrived = 0;
  double size = 0;
  bool answered = false;
  std::uint32_t copies = 0;  // at replicas
};

// A job on its way to a replica and back; the first and, when hedged, the second.
struct Copy {
  std::uint32_t job = 0;
  std::uint32_t replica = 0;
  Ticket ticket;
};

// Places that are used again.
template <typename Item>
class Places {
 public:
  std::uint32_t add(Item item) {
    if (free_.empty()) {
      items_.push_back(item);
      return static_cast<std::uint32_t>(items_.size() - 1);
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    items_[place] = item;
    return place;
  }
  void remove(std::uint32_t place) { free_.push_back(place); }
  Item& operator[](std::uint32_t place) { return items_[place]; }

 private:
  std::vector<Item> items_;
  std::vector<std::uint32_t> free_;
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
        stalls_(setting.seed + 2'000'003),
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
    options.hedge_percentile = setting.hedge_percentile;
    options.hedge_budget = setting.hedge_budget;
    options.seed = setting.seed;
    return options;
  }
  static Instant instant(double at) { return Instant(from_seconds(at)); }

  void schedule(double at, Kind kind, std::uint32_t copy) {
    events_.push({at, ++order_, kind, copy});
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
        servers_[copies_[event.copy].replica].queue.push_back(event.copy);
        serve(copies_[event.copy].replica);
        break;
      case Kind::kServed:
        servers_[copies_[event.copy].replica].busy = false;
        schedule(now_ + setting_.delay, Kind::kNoticed, event.copy);
        serve(copies_[event.copy].replica);
        break;
      case Kind::kNoticed:
        notice(event.copy);
        break;
      case Kind::kTimer:
        break;
    }
    if (!setting_.oracle) {
      pump();
    }
  }

  void arrive() {
    const std::uint32_t job = jobs_.add({now_, draw(setting_.law, sizes_)});
    if (setting_.clients == 0) {
      schedule(now_ + next_gap(), Kind::kArrival, 0);
    }
    if (setting_.oracle) {
      send(job, least_finish(job), Ticket{});
      return;
    }
    Dispatcher::Arrival arrival;
    arrival.model = model_;
    arrival.deadline = instant(now_ + 1e6);  // equal for all: the order of arrival
    arrival.may_be_hedged = true;
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
      send(static_cast<std::uint32_t>(assignment->cookie), assignment->replica.value(),
           assignment->ticket);
    }
    if (setting_.hedge_percentile <= 0) {
      return;
    }
    while (const auto hedge = dispatcher_.next_hedge(instant(now_))) {
      hedges_ += 1;
      send(static_cast<std::uint32_t>(hedge->cookie), hedge->replica.value(), hedge->ticket);
    }
    const auto due = dispatcher_.next_deadline();
    if (due && (timer_at_ <= now_ || to_seconds(due->time_since_epoch()) < timer_at_)) {
      timer_at_ = to_seconds(due->time_since_epoch());
      CHECK(timer_at_ > now_);  // what is due now was done now
      schedule(timer_at_, Kind::kTimer, 0);
    }
  }

  void send(std::uint32_t job, std::uint32_t replica, Ticket ticket) {
    ++jobs_[job].copies;
    schedule(now_ + setting_.delay, Kind::kReachesReplica, copies_.add({job, replica, ticket}));
  }

  void serve(std::uint32_t replica) {
    Server& server = servers_[replica];
    if (server.busy || server.queue.empty()) {
      return;
    }
    const std::uint32_t copy = server.queue.front();
    server.queue.pop_front();
    server.busy = true;
    double service = jobs_[copies_[copy].job].size / setting_.speeds[replica];
    if (replica < setting_.stalling && stalls_.chance(setting_.stall_share)) {
      service *= setting_.stall_factor;
    }
    schedule(now_ + service, Kind::kServed, copy);
  }

  void notice(std::uint32_t copy) {
    const std::uint32_t number = copies_[copy].job;
    if (!setting_.oracle) {
      dispatcher_.completed(instant(now_), copies_[copy].ticket);
    }
    copies_.remove(copy);
    Job& job = jobs_[number];
    const bool first = !job.answered;
    job.answered = true;
    if (--job.copies == 0) {
      jobs_.remove(number);
    }
    if (!first) {
      return;
    }
    latencies_.push_back(now_ - job.arrived);
    if (latencies_.size() == setting_.requests / 10) {
      measured_from_ = now_;
    }
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
    return {at(.5),
            at(.9),
            at(.99),
            at(.999),
            sum / count,
            count / (now_ - measured_from_),
            hedges_ / static_cast<double>(latencies_.size())};
  }

  QueueingSetting setting_;
  Prng arrivals_;
  Prng sizes_;
  Prng stalls_;
  Dispatcher dispatcher_;
  balance::ModelIndex model_;
  std::vector<Server> servers_;
  Places<Job> jobs_;
  Places<Copy> copies_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  double now_ = 0;
  double measured_from_ = 0;
  double timer_at_ = 0;
  double hedges_ = 0;
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
    total.p999 += one.p999 / seeds;
    total.mean += one.mean / seeds;
    total.throughput += one.throughput / seeds;
    total.hedged += one.hedged / seeds;
  }
  return total;
}

}  // namespace septet::simulation
