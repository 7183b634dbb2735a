// ReplicaHealth: whether one replica may be given requests.
//
//            probe succeeded                    lost, 3 failures, too slow
//   joining ----------------> up <-----------+ --------------------------> ejected
//      ^ probe failed: wait   |              | probe succeeded                |
//      +--(50 ms .. 1 s)      | drain        +--------------------------------+
//                             v                     probe failed: wait twice as long
//                          draining (finishes what it has, then goes)
//
// While no replica is up, requests wait for one that joined or was lost less than 5 s ago (a
// restart on the same machine takes less); after that they are refused at once.
//
// Owned by Dispatcher; a value. Back-off: a replica whose connection is lost is asked again after
// 100 ms, doubled to 5 s (one that restarts on the same machine is back within that); one that
// fails or is slow after 1 s, doubled to 60 s (as Envoy's outlier detection). Ten good replies
// reset it.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace septet::balance {

enum class ReplicaState { kJoining, kUp, kEjected, kDraining };
const char* to_string(ReplicaState state);

// Why a request got no reply from a replica.
enum class Failure {
  kNotConnected,     // nothing was sent
  kStaleConnection,  // a kept connection had been closed; says nothing about the replica
  kConnectionLost,   // while the request was with it
  kBadReply,         // not HTTP, too much, or too early
  kTimedOut,
};

class ReplicaHealth {
 public:
  explicit ReplicaHealth(Instant now) : probe_at_(now), hope_until_(now + kHope) {}

  ReplicaState state() const { return state_; }
  bool up() const { return state_ == ReplicaState::kUp; }
  // Whether it is worth waiting for, and until when that may hold.
  bool hopeful(Instant now) const { return !up() && now < hope_until_; }
  Instant hope_until() const { return hope_until_; }
  std::uint64_t ejections() const { return ejections_; }

  void succeeded();
  void failed(Instant now, Failure failure);
  // The replica answers, but far slower than its peers.
  void too_slow(Instant now);
  void drain();

  // When the next probe is due; only in the states joining and ejected, and with none under way.
  bool awaits_probe() const;
  Instant probe_at() const { return probe_at_; }
  void probe_started() { probing_ = true; }
  void probe_succeeded();
  void probe_failed(Instant now);

 private:
  static constexpr Duration kHope = seconds(5);

  void eject(Instant now, Duration base, Duration longest);

  ReplicaState state_ = ReplicaState::kJoining;
  bool probing_ = false;
  std::uint32_t failures_in_a_row_ = 0;
  std::uint32_t successes_in_a_row_ = 0;
  std::uint64_t ejections_ = 0;
  Duration backoff_{};  // zero = the next ejection starts at its base
  Duration longest_ = seconds(1);
  Instant probe_at_;
  Instant hope_until_;
};

}  // namespace septet::balance
