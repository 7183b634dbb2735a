#include "balance/policy.h"

#include <array>

namespace septet::balance {

const char* to_string(Policy policy) {
  switch (policy) {
    case Policy::kPull:
      return "pull";
    case Policy::kRoundRobin:
      return "round-robin";
    case Policy::kRandom:
      return "random";
    case Policy::kPowerOfTwo:
      return "power-of-two";
    case Policy::kLeastOutstanding:
      return "least-outstanding";
    case Policy::kShortestExpectedDelay:
      return "shortest-delay";
  }
  return "pull";
}

std::optional<Policy> parse_policy(std::string_view text) {
  constexpr std::array kAll = {
      Policy::kPull,       Policy::kRoundRobin,       Policy::kRandom,
      Policy::kPowerOfTwo, Policy::kLeastOutstanding, Policy::kShortestExpectedDelay};
  for (const Policy policy : kAll) {
    if (text == to_string(policy)) {
      return policy;
    }
  }
  return std::nullopt;
}

}  // namespace septet::balance
