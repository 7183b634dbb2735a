// CgroupGround: leases on control groups: limits of simulated slices, device rules of real ones.
//
//   lease 17  ->  group lease-PREFIX-17  <- septet run's command and all it starts
//
// The groups outlive the daemon (os/lasting_cgroup.h); set_up() after a crash finds them by name.
// Where no group can be made, processes are known by pid alone, limits are advisory, and why() says
// so once. Owned by main(), used by the Lender's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "lend/edge/lease_ground.h"
#include "lend/edge/sharing_driver.h"

namespace septet::lend {

// A stable tag for the names of a ledger's groups: two daemons on one machine must not meet.
std::string ledger_tag(const std::string& ledger_path);

struct CgroupGroundOptions {
  // The ledger's tag.
  std::string prefix{};
  bool is_simulated = false;
  // Simulated GPU: what the part of a partition may use of this machine.
  std::function<os::CgroupLimits(const Partition&, const Holding&)> limits{};
  // Real GPU: the device nodes that the partitions' holder may open. Absent: not restricted.
  std::function<Result<std::vector<os::GuardedMajor>>(const std::vector<Partition>&)>
      device_rules{};
  // Real GPU: whether kernels of these processes may run; absent or kUnknown: nobody can tell, so
  // the lease is never called idle.
  std::function<Activity(const std::vector<int>&)> gpu_activity{};
  SharingDriver* sharing = nullptr;  // null: shared slices are refused
};

class CgroupGround : public LeaseGround {
 public:
  CgroupGround(Result<os::CgroupMounts> mounts, CgroupGroundOptions options);

  void end_unknown(const std::set<LeaseId>& known) override;
  Result<LeaseSetting> set_up(const Lease& lease,
                              const std::vector<Partition>& partitions) override;
  Result<Ok> add_process(LeaseId lease, pid_t pid) override;
  std::vector<int> processes(LeaseId lease) override;
  void ask_to_end(LeaseId lease) override;
  void kill(LeaseId lease) override;
  Result<Ok> set_paused(LeaseId lease, os::Frozen frozen) override;
  Result<Ok> take_down(LeaseId lease) override;
  Activity observe(const Lease& lease) override;

  // Why limits are advisory; empty when they are real.
  const std::string& why_advisory() const { return why_advisory_; }

 private:
  struct KnownProcess {
    pid_t pid = 0;
    std::uint64_t started = 0;  // with the pid it names a process for good
  };
  struct Entry {
    Lease lease;
    std::unique_ptr<os::LastingCgroup> group;  // null where none can be made
    std::vector<KnownProcess> loose;           // known by pid, without a group
    Duration processor_time{};
    Instant observed{};
  };

  Result<Verified> limit(Entry& entry, const std::vector<Partition>& partitions,
                         LeaseSetting& setting);
  // Before a lease's number.
  std::string group_prefix() const;
  void signal_all(Entry& entry, int signal);

  std::optional<os::CgroupMounts> mounts_;
  CgroupGroundOptions options_;
  std::string why_advisory_;
  std::map<LeaseId, Entry> entries_;
};

}  // namespace septet::lend
