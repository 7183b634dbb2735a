// The rules by which a team lends: times, quotas, and when a waiting request may not be passed.
//
// Values only; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/time.h"

namespace septet::lend {

// Limits of one user or of one group together; absent = no limit.
struct Quota {
  std::optional<unsigned> leases;          // held at once
  std::optional<unsigned> share_permille;  // of GPUs, held at once: 1000 = one whole GPU
  std::optional<std::int64_t> memory_mib;  // held at once
  std::optional<Duration> time;            // that one request or renewal may ask for
  bool operator==(const Quota&) const = default;
};

struct Policy {
  Duration default_time = std::chrono::hours(8);  // of an open-ended lease, then extended
  Duration warn_before_expiry = std::chrono::minutes(5);
  Duration idle_grace = std::chrono::minutes(5);      // between the warning and the reclaim
  Duration kill_grace = seconds(30);                  // between being asked to end and being killed
  Duration kill_again_after = seconds(10);            // until killed processes are killed again
  Duration prepare_within = std::chrono::minutes(1);  // else setting a lease up has failed
  Duration layout_within = std::chrono::minutes(5);   // else a change of layout has failed
  Duration freshness = seconds(30);  // older observations of idleness decide nothing
  Duration gate_hold = seconds(2);   // low priority stays paused after high worked
  Duration starving_after = std::chrono::minutes(30);  // then nothing younger is preferred
  Duration layout_retry_after = seconds(30);           // after a failed change of layout
  std::size_t longest_queue = 10000;
  std::size_t most_per_user_queued = 1000;
  bool may_change_layout = true;  // idle partitions may be re-laid for a request that fits nowhere

  Quota every_user;
  std::map<std::string, Quota> users;   // instead of every_user
  std::map<std::string, Quota> groups;  // all members together
};

}  // namespace septet::lend
