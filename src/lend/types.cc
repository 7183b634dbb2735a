#include "lend/types.h"

#include <array>

namespace septet::lend {

namespace {

constexpr std::array<const char*, 4> kKinds = {"gpu", "mig", "mps", "time-slice"};
constexpr std::array<const char*, 3> kPriorities = {"low", "normal", "high"};
constexpr std::array<const char*, 6> kStates = {"queued", "preparing", "active",
                                                "warned", "releasing", "ended"};
constexpr std::array<const char*, 10> kReasons = {
    "none",      "released", "holder gone",    "expired", "idle",
    "preempted", "revoked",  "partition lost", "failed",  "gave up waiting"};

template <typename Enum, std::size_t N>
std::optional<Enum> parse_word(std::string_view word, const std::array<const char*, N>& words) {
  for (std::size_t i = 0; i < N; ++i) {
    if (word == words[i]) {
      return static_cast<Enum>(i);
    }
  }
  return std::nullopt;
}

}  // namespace

const char* to_string(SliceKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }
const char* to_string(Priority priority) { return kPriorities[static_cast<std::size_t>(priority)]; }
const char* to_string(LeaseState state) { return kStates[static_cast<std::size_t>(state)]; }
const char* to_string(EndReason reason) { return kReasons[static_cast<std::size_t>(reason)]; }

std::optional<Priority> parse_priority(std::string_view word) {
  return parse_word<Priority>(word, kPriorities);
}
std::optional<LeaseState> parse_lease_state(std::string_view word) {
  return parse_word<LeaseState>(word, kStates);
}
std::optional<EndReason> parse_end_reason(std::string_view word) {
  return parse_word<EndReason>(word, kReasons);
}

}  // namespace septet::lend
