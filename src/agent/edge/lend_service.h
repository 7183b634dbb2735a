// LendService: the lease daemon's objects, built and wired: ledger file, ground, lender, interface.
//
//   ControlServer -> LeaseApi -> Lender -> Ledger (decides)
//                                  |-> LedgerFile   (SQLite)
//                                  |-> CgroupGround (limits, groups) -> SharingDriver (MPS, ...)
//                                  '-> GpuDriver    (what there is; re-laying idle partitions)
//
// Owned by the verb that is the daemon; everything in the loop's thread.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "agent/edge/control_server.h"
#include "agent/edge/lease_api.h"
#include "agent/edge/lend_config.h"
#include "gpu/gpu_driver.h"
#include "lend/edge/cgroup_ground.h"
#include "lend/edge/lender.h"
#include "lend/edge/sharing_driver.h"
#include "lend/inventory.h"
#include "os/event_loop.h"

namespace septet::agent {

struct LendServiceOptions {
  std::string socket;
  std::string ledger;
  LendConfig config;
};

class LendService {
 public:
  // sharing may be null: then shared slices are refused. Borrows driver and sharing.
  static Result<std::unique_ptr<LendService>> start(os::EventLoop& loop, gpu::GpuDriver& driver,
                                                    lend::SharingDriver* sharing,
                                                    const LendServiceOptions& options);

  // What a user should know: simulated or not, limits real or advisory.
  const std::string& note() const { return note_; }
  const lend::Lender& lender() const { return *lender_; }

 private:
  LendService(gpu::GpuDriver& driver, lend::SharingDriver* sharing)
      : driver_(driver), sharing_(sharing) {}

  Result<Ok> build(os::EventLoop& loop, const LendServiceOptions& options);
  Result<lend::PartitionsObserved> observe(const std::set<std::int64_t>& known);
  // The partitions of the GPU that a daemon shares.
  std::map<lend::PartitionId, lend::SharingProcesses> shared_on(
      const gpu::GpuState& state, const lend::InventoryFacts& facts) const;
  // Whether kernels of these processes may run.
  lend::Activity gpu_activity(const std::vector<int>& processes) const;
  lend::LayoutChangeEnded change_layout(const lend::ChangeLayout& change);
  os::CgroupLimits limits_of(const lend::Partition& partition, const lend::Holding& holding) const;

  gpu::GpuDriver& driver_;
  lend::SharingDriver* sharing_;  // may be null
  gpu::DriverInfo info_;
  std::vector<SharingRule> sharing_rules_;
  std::vector<gpu::GpuState> states_;  // as last observed
  std::string note_;
  std::unique_ptr<lend::LedgerFile> file_;
  std::unique_ptr<lend::CgroupGround> ground_;
  std::unique_ptr<lend::Lender> lender_;
  std::unique_ptr<LeaseApi> api_;
  std::unique_ptr<ControlServer> server_;
};

}  // namespace septet::agent
