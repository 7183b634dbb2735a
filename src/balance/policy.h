// Policy: by which rule a request finds its replica.
//
// kPull is the default; the others are there for comparison (docs/measurements) and for replicas
// that keep a queue of their own (kShortestExpectedDelay). A value; any thread.
#pragma once

#include <optional>
#include <string_view>

namespace septet::balance {

enum class Policy {
  kPull,                   // one queue per model; a replica with room takes the head, fastest first
  kRoundRobin,             // cyclic, as nginx does
  kRandom,                 // uniform
  kPowerOfTwo,             // two distinct random replicas, the one with fewer outstanding
  kLeastOutstanding,       // fewest outstanding, ties by a rotating pointer, as nginx least_conn
  kShortestExpectedDelay,  // least (outstanding + 1) / speed, ties to the idle one, then the faster
};

// "pull", "round-robin", "random", "power-of-two", "least-outstanding", "shortest-delay".
const char* to_string(Policy policy);
std::optional<Policy> parse_policy(std::string_view text);

}  // namespace septet::balance
