// Queueing: the balancer's own dispatcher over simulated replicas, in virtual time.
//
// Event-driven. Replicas serve in order of arrival at speed v: service time = s / v, s drawn once
// per request in arrival order; one unit of service is one simulated second. Open loop: Poisson
// arrivals at rate rho * sum of v. Closed loop: N requests at the start, the next one at each
// completion. Requests and their ends travel for `delay` in each direction. The first tenth of the
// completions is dropped; percentile = sorted[floor(q n)].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "balance/policy.h"

namespace septet::simulation {

enum class Law { kDeterministic, kJitter, kExponential, kBimodal, kLogNormal };
const char* to_string(Law law);

struct QueueingSetting {
  balance::Policy policy = balance::Policy::kPull;
  std::uint32_t bound = 1;    // of kPull; 0 = by the dispatcher's own rule
  bool learns_speed = false;  // otherwise it is told the true speeds
  bool knows_speed = true;    // false: not even that
  bool oracle = false;        // no dispatcher: sizes are known, least finish time
  Law law = Law::kExponential;
  std::vector<double> speeds = std::vector<double>(7, 1.0);
  double rho = 0.7;           // open loop
  std::uint32_t clients = 0;  // closed loop when > 0
  double delay = 0;           // one way, in units of service
  // Services of the first so many replicas stall: each with this probability, for so many times as
  // long. A stall is the replica's, so that a second copy of the request need not meet with one.
  std::uint32_t stalling = 0;
  double stall_share = 0.01;
  double stall_factor = 20;
  double hedge_percentile = 0;  // as the dispatcher's options
  double hedge_budget = 0.05;
  std::uint64_t requests = 100'000;
  std::uint64_t seed = 11;
};

struct QueueingFigures {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double p999 = 0;
  double mean = 0;
  double throughput = 0;
  double hedged = 0;  // share of the requests that were sent twice
};

QueueingFigures simulate(const QueueingSetting& setting);
// The mean of the figures over the seeds setting.seed, +1, ...
QueueingFigures simulate_seeds(QueueingSetting setting, std::uint32_t seeds);

}  // namespace septet::simulation
