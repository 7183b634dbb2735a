// The words of lending: partition, slice wanted, owner, lease.
//
//   queued --> preparing --> active <--> warned --> releasing --> ended
//      |           |            |                      ^
//      +-----------+--> ended   +----------------------+
//
// A partition (a MIG device or a whole GPU) is held from preparing until ended, so that nothing is
// lent twice while processes of the last holder still run. Values only; any thread may use its own
// copy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "gpu/types.h"

namespace septet::lend {

using LeaseId = Id<struct LeaseIdTag, std::uint64_t>;
using PartitionId = Id<struct PartitionIdTag, std::string>;  // "MIG-..." or "GPU-..."
using UserId = Id<struct UserIdTag, unsigned>;

enum class SliceKind {
  kWholeGpu,   // a GPU that is not partitioned
  kInstance,   // a MIG device alone
  kMps,        // a share of threads and memory beside other clients
  kTimeSlice,  // turns beside other tenants
};
const char* to_string(SliceKind kind);

inline bool is_shared(SliceKind kind) {
  return kind == SliceKind::kMps || kind == SliceKind::kTimeSlice;
}

// What can be lent: the whole of it to one, or shares of it to several.
struct Partition {
  PartitionId id;
  gpu::GpuUuid gpu;
  std::string index;    // "0" or "0:3": GPU and GPU instance
  std::string profile;  // "1g.5gb"; "gpu" for a whole GPU
  std::int64_t memory_mib = 0;
  unsigned share_permille = 0;  // of its GPU's compute slices
  unsigned mps_clients = 0;     // how many an MPS server here takes; 0 = MPS cannot be used
  bool mps_serves_several_users = false;
  std::vector<SliceKind> kinds;  // what may be lent of it; empty = every kind
  std::string time_slice;        // length of turns that the configuration wants; empty = ours
  bool is_lendable = true;
  std::string why_not_lendable;  // e.g. "held by process 42 (python)"
  std::vector<int> outside;      // processes here that their sharing daemon does not limit

  bool is_whole_gpu() const { return profile == "gpu"; }
  bool operator==(const Partition&) const = default;
};

// What a holder asks for; written as parse_slice_want() reads it.
struct SliceWant {
  SliceKind kind = SliceKind::kInstance;
  std::string profile;               // exact ("1g.5gb") or slices only ("3g"); empty = any
  std::int64_t min_memory_mib = 0;   // kInstance: of the partition; shared: of the share
  unsigned percent = 0;              // kMps: of the threads
  std::optional<std::string> exact;  // a UUID or an index such as "0:3"
  unsigned count = 1;                // partitions, all or none
  bool operator==(const SliceWant&) const = default;
};

struct Owner {
  UserId uid;
  std::string user;
  std::vector<std::string> groups;
  bool operator==(const Owner&) const = default;
};

enum class Priority { kLow, kNormal, kHigh };
const char* to_string(Priority priority);
std::optional<Priority> parse_priority(std::string_view word);

enum class WhenBusy { kRefuse, kQueue };

// A request as it came in; kept unchanged in its lease.
struct LeaseRequest {
  Owner owner;
  SliceWant want;
  Priority priority = Priority::kNormal;
  std::optional<Duration> time;  // absent: open-ended, extended while nobody waits for it
  Duration idle_after{};         // reclaimed when idle this long; zero = never
  bool is_preemptible = false;   // may be reclaimed for a request of higher priority
  WhenBusy when_busy = WhenBusy::kRefuse;
  std::optional<Duration> longest_wait;  // in the queue; absent = as long as it takes
  bool is_attached = false;              // lives as long as its holder's connection
  bool has_checkpoint_hook = false;      // the holder's program asks its processes to end, not we
  std::string purpose;
  bool operator==(const LeaseRequest&) const = default;
};

enum class LeaseState { kQueued, kPreparing, kActive, kWarned, kReleasing, kEnded };
const char* to_string(LeaseState state);
std::optional<LeaseState> parse_lease_state(std::string_view word);

enum class EndReason {
  kNone,
  kReleased,       // by its owner
  kHolderGone,     // the command ended or its connection broke
  kExpired,        // its time was over
  kIdle,           // warned, and still idle
  kPreempted,      // for a request of higher priority
  kRevoked,        // by an administrator
  kPartitionLost,  // the partition is no longer there
  kFailed,         // it could not be set up
  kGaveUp,         // waited in the queue as long as it was willing to
};
const char* to_string(EndReason reason);
std::optional<EndReason> parse_end_reason(std::string_view word);

// The part of one partition that a lease holds.
struct Holding {
  PartitionId partition;
  SliceKind kind = SliceKind::kInstance;
  unsigned percent = 0;         // kMps
  std::int64_t memory_mib = 0;  // limit or budget
  unsigned share_permille = 0;  // of a GPU; what quotas count
  bool operator==(const Holding&) const = default;
};

struct Lease {
  LeaseId id;
  LeaseRequest request;
  LeaseState state = LeaseState::kQueued;
  EndReason reason = EndReason::kNone;
  std::vector<Holding> holdings;
  Instant requested{};
  Instant granted{};    // meaningful from kPreparing on
  Instant expires{};    // meaningful from kActive on
  Instant last_busy{};  // the last instant at which it was seen at work
  Instant deadline{};   // kWarned: when it is reclaimed; kReleasing: when processes are killed
  EndReason warned_for = EndReason::kNone;
  bool is_paused = false;   // by the priority gate of time-sliced partitions
  unsigned generation = 0;  // grows with every change of state or expiry
  bool operator==(const Lease&) const = default;

  bool runs() const { return state == LeaseState::kActive || state == LeaseState::kWarned; }
  bool holds() const { return !holdings.empty() && state != LeaseState::kEnded; }
};

}  // namespace septet::lend
