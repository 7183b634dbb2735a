// run_closed_loop: N connections, each with one request outstanding, until so many were answered.
//
// For tests and benches of the balancer; single-threaded, blocks until done. A connection that is
// cut is opened again, its request counts as failed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "os/endpoint.h"

namespace septet::test {

struct ClosedLoop {
  os::Endpoint target;
  std::size_t connections = 1;
  std::uint64_t requests = 1;
  std::string request;                            // head and body, as sent
  Duration give_up = seconds(100);                // of the whole run
  std::function<void(std::uint64_t)> on_ended{};  // after each request: how many have ended
};

struct ClosedLoopResult {
  std::uint64_t answered = 0;                  // whole replies, whatever the status
  std::uint64_t failed = 0;                    // status other than 200, or the connection was cut
  std::map<unsigned, std::uint64_t> statuses;  // of whole replies
  std::uint64_t cut = 0;
  std::vector<Duration> latencies;  // of 200s, in order of completion
  Duration elapsed{};

  // sorted[floor(q n)] without the first tenth of the completions; zero when there are none.
  Duration percentile(double q) const;
  double per_second() const { return static_cast<double>(answered) / to_seconds(elapsed); }
};

ClosedLoopResult run_closed_loop(const ClosedLoop& load);

// "POST /v2/models/MODEL/infer" with a body of that size.
std::string infer_request(std::string_view model, std::size_t body_bytes);

}  // namespace septet::test
