// The generator's arithmetic against queueing theory, in virtual time: schedule, latency from the
// due instant, histogram and percentiles. Service times have mean 1 s of virtual time.
//
// Theory: M/M/7 from Erlang's C, M/D/7 from Franx (2001), closed loops from the machine-repair
// model.

#include <gtest/gtest.h>

#include <functional>
#include <queue>
#include <vector>

#include "base/prng.h"
#include "measure/histogram.h"
#include "measure/load_schedule.h"
#include "support/replica_queue.h"

namespace septet::measure {
namespace {

constexpr int kReplicas = 7;
using Service = std::function<Duration(Prng&)>;

Duration exponential(Prng& prng) { return from_seconds(prng.exponential()); }
Duration deterministic(Prng& /*prng*/) { return seconds(1); }

Histogram open_loop(double utilisation, const Service& service, int requests) {
  LoadSchedule schedule = LoadSchedule::poisson(kReplicas * utilisation, 42);
  Prng prng(43);
  test::ReplicaQueue replicas(kReplicas);
  Histogram latency;
  for (int i = 0; i < requests; ++i) {
    const Duration due = schedule.next();
    const Duration end = replicas.serve(due, service(prng));
    if (i > requests / 10) {
      latency.record(end - due);
    }
  }
  return latency;
}

Histogram closed_loop(int in_flight, const Service& service, int requests) {
  std::priority_queue<Duration, std::vector<Duration>, std::greater<>> next_send;
  for (int i = 0; i < in_flight; ++i) {
    next_send.push(Duration::zero());
  }
  Prng prng(44);
  test::ReplicaQueue replicas(kReplicas);
  Histogram latency;
  for (int i = 0; i < requests; ++i) {
    const Duration sent = next_send.top();
    next_send.pop();
    const Duration end = replicas.serve(sent, service(prng));
    next_send.push(end);
    if (i > requests / 10) {
      latency.record(end - sent);
    }
  }
  return latency;
}

struct Expected {
  double mean;
  double p50;
  double p90;
  double p99;
};

void expect_within_one_percent(const Histogram& latency, const Expected& theory) {
  EXPECT_NEAR(latency.mean_ns() / 1e9 / theory.mean, 1, 0.01);
  EXPECT_NEAR(latency.percentile_ns(50) / 1e9 / theory.p50, 1, 0.01);
  EXPECT_NEAR(latency.percentile_ns(90) / 1e9 / theory.p90, 1, 0.01);
  EXPECT_NEAR(latency.percentile_ns(99) / 1e9 / theory.p99, 1, 0.01);
}

TEST(QueueTheory, OpenLoopWithExponentialServiceIsMM7) {
  expect_within_one_percent(open_loop(0.5, exponential, 1'000'000), {1.022, 0.718, 2.333, 4.635});
  expect_within_one_percent(open_loop(0.7, exponential, 1'000'000), {1.143, 0.846, 2.531, 4.846});
}

TEST(QueueTheory, OpenLoopWithDeterministicServiceIsMD7) {
  expect_within_one_percent(open_loop(0.5, deterministic, 1'000'000), {1.0135, 1.0, 1.0, 1.362});
  expect_within_one_percent(open_loop(0.7, deterministic, 1'000'000), {1.0788, 1.0, 1.314, 1.798});
}

TEST(QueueTheory, ClosedLoopsFollowErlangPlusService) {
  expect_within_one_percent(closed_loop(7, exponential, 1'000'000), {1, 0.693, 2.303, 4.605});
  expect_within_one_percent(closed_loop(14, exponential, 1'000'000), {2, 1.748, 3.382, 5.684});
  expect_within_one_percent(closed_loop(100, exponential, 1'000'000),
                            {14.286, 14.16, 16.49, 18.93});
}

}  // namespace
}  // namespace septet::measure
