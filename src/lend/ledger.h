// The ledger: who holds what, who waits, and what has to happen next. A state machine without I/O.
//
// Owned by the daemon part, called by its one thread: step(now, event), then take_commands() and do
// them in order (all SaveLease of one batch first and in one transaction: what is written survives
// a crash, what is not was never promised), then call step() again by next_deadline().
//
// Invariants, checked after every step:
//   1. A partition is held by one exclusive lease, or by shared ones of one kind.
//   2. The percentages of one partition add up to at most 100, the memory to at most all of it.
//   3. No user and no group holds more than their quota allowed when it was granted.
//   4. What ended holds nothing; what holds something is on a partition that was lent to it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "lend/policy.h"
#include "lend/schedule.h"
#include "lend/types.h"

namespace septet::lend {

// A profile that some GPU could be laid out for.
struct OfferedProfile {
  gpu::GpuUuid gpu;
  std::string name;
  std::int64_t memory_mib = 0;
  unsigned max_instances = 0;
};

enum class Activity { kBusy, kIdle, kUnknown };

enum class LayoutOutcome {
  kDone,           // the partitions were observed anew before this event
  kImpossibleNow,  // the idle partitions do not suffice; needs says what would
  kFailed,         // it was tried and did not work
};

// --- events ---------------------------------------------------------------------------------
struct PartitionsObserved {
  std::vector<Partition> partitions;
  std::vector<OfferedProfile> offered;
};
// The id comes from next_id(), so that commands can be told apart.
struct LeaseRequested {
  LeaseId id;
  LeaseRequest request;
};
struct PreparationSucceeded {
  LeaseId id;
};
struct PreparationFailed {
  LeaseId id;
  Error error;
};
struct RenewalRequested {
  LeaseId id;
  UserId by;
  Duration time;
  std::optional<unsigned> generation;  // refused when the lease has changed since
};
struct ReleaseRequested {
  LeaseId id;
  UserId by;
};
struct HolderLost {
  LeaseId id;
};
struct ActivityObserved {
  LeaseId id;
  Instant taken;
  Activity activity = Activity::kUnknown;
};
// No process of the lease is left and what was set up for it is gone.
struct LeaseCleared {
  LeaseId id;
};
struct LayoutChangeEnded {
  LeaseId id;
  LayoutOutcome outcome = LayoutOutcome::kFailed;
  std::vector<PartitionId> needs;
};
struct TimePassed {};

using Event = std::variant<PartitionsObserved, LeaseRequested, PreparationSucceeded,
                           PreparationFailed, RenewalRequested, ReleaseRequested, HolderLost,
                           ActivityObserved, LeaseCleared, LayoutChangeEnded, TimePassed>;

// --- commands -------------------------------------------------------------------------------
struct SaveLease {
  Lease lease;
};
// Set up limits and sharing; answered by PreparationSucceeded or PreparationFailed.
struct PrepareLease {
  Lease lease;
};
struct TellGranted {
  LeaseId id;
};
struct TellQueued {
  LeaseId id;
};
// The request, renewal or release is refused; nothing else changed.
struct TellRefused {
  LeaseId id;
  Error error;
};
struct TellRenewed {
  LeaseId id;
};
struct WarnHolder {
  LeaseId id;
  EndReason reason = EndReason::kNone;
  Instant deadline{};
};
struct WithdrawWarning {
  LeaseId id;
};
// Run the checkpoint hook, ask the processes to end; answered by LeaseCleared once they have.
struct AskToEnd {
  LeaseId id;
  EndReason reason = EndReason::kNone;
  Instant deadline{};
};
struct KillProcesses {
  LeaseId id;
};
struct TellEnded {
  LeaseId id;
  EndReason reason = EndReason::kNone;
};
struct PauseProcesses {
  LeaseId id;
};
struct ResumeProcesses {
  LeaseId id;
};
// Re-lay idle partitions so that the want fits; answered by LayoutChangeEnded. idle: all that may
// be destroyed; nothing is lent on them until then.
struct ChangeLayout {
  LeaseId id;
  SliceWant want;
  std::vector<PartitionId> idle;
};

using Command = std::variant<SaveLease, PrepareLease, TellGranted, TellQueued, TellRefused,
                             TellRenewed, WarnHolder, WithdrawWarning, AskToEnd, KillProcesses,
                             TellEnded, PauseProcesses, ResumeProcesses, ChangeLayout>;

class Ledger {
 public:
  explicit Ledger(Policy policy);

  // Takes over what an earlier run wrote; once, before the first step. Commands repeat what may
  // have been cut off: preparation, asking to end. next_id: above every id ever used.
  void restore(Instant now, std::vector<Lease> leases, LeaseId next_id);

  void step(Instant now, const Event& event);
  std::vector<Command> take_commands();
  std::optional<Instant> next_deadline() const;

  // A fresh id for LeaseRequested.
  LeaseId next_id();

  const Policy& policy() const { return policy_; }
  const std::vector<Partition>& partitions() const { return partitions_; }
  // Everything that has not ended.
  const std::map<LeaseId, Lease>& leases() const { return leases_; }
  // Those that wait, first in line first.
  const std::vector<LeaseId>& queue() const { return queue_; }
  bool waits_for_quota(LeaseId id) const { return quota_waiting_.contains(id); }

 private:
  struct LayoutChange {
    LeaseId lease;
    std::vector<PartitionId> withheld;
    Instant deadline{};
  };

  void on(const PartitionsObserved& event);
  void on(const LeaseRequested& event);
  void on(const PreparationSucceeded& event);
  void on(const PreparationFailed& event);
  void on(const RenewalRequested& event);
  void on(const ReleaseRequested& event);
  void on(const HolderLost& event);
  void on(const ActivityObserved& event);
  void on(const LeaseCleared& event);
  void on(const LayoutChangeEnded& event);
  void on(const TimePassed& event);

  Result<Ok> check_request(const LeaseRequest& request) const;
  Result<Ok> check_renewal(const Lease& lease, const RenewalRequested& event) const;
  bool could_be_laid_out(const SliceWant& want) const;
  std::vector<Holding> smallest_holdings(const SliceWant& want) const;

  void run_timers();
  void run_timer(Lease& lease);
  void run_expiry(Lease& lease);
  void run_schedule();
  void grant(const Grant& grant);
  void refuse_unqueued(LeaseId id);
  void consider_layout(const Head& head);
  void update_preemption(const std::optional<Head>& head);
  std::set<LeaseId> preemption_victims(const Head& head) const;
  void update_gate();
  bool yields_to_higher(const Lease& lease) const;

  void fail_preparation(Lease& lease, const Error& error);
  void warn(Lease& lease, EndReason reason, Instant deadline);
  void withdraw_warning(Lease& lease);
  void release(Lease& lease, EndReason reason);
  void end(LeaseId id, EndReason reason);
  void changed(Lease& lease);
  void account_use(const Lease& lease);
  bool is_waited_for(const Lease& lease, bool by_starving_only) const;
  Instant warning_instant(const Lease& lease) const;
  void check_invariants() const;

  Policy policy_;
  Instant now_{};
  std::vector<Partition> partitions_;
  std::vector<OfferedProfile> offered_;
  std::map<LeaseId, Lease> leases_;
  std::uint64_t last_id_ = 0;

  std::vector<LeaseId> queue_;
  std::set<LeaseId> quota_waiting_;
  bool must_schedule_ = false;
  std::map<UserId, double> recent_use_;  // GPU-seconds, halved every few hours
  Instant use_decayed_{};

  std::optional<LayoutChange> layout_change_;
  std::map<LeaseId, std::vector<PartitionId>> needs_;
  std::map<LeaseId, std::uint64_t> layout_tried_;  // at which supply_
  std::optional<Instant> layout_retry_;
  std::uint64_t supply_ = 0;  // grows when something becomes free or the layout changes

  std::vector<Command> commands_;
};

}  // namespace septet::lend
