#include "agent/edge/sharing_drivers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "partition/edge/mps_control.h"
#include "partition/edge/time_slice_driver.h"

namespace septet::agent {

namespace {

constexpr Duration kServerGrace = seconds(5);  // for clients that are left when a daemon ends

// Where the configuration says nothing: short turns, because tenants who share by turns are mostly
// people who wait for an answer.
constexpr partition::SliceLength kShortTurns = partition::SliceLength::kShort;

// The smallest limit from this one on that the daemon answers exactly: from one GiB it knows whole
// ones only.
std::int64_t readable_limit(std::int64_t memory_mib) {
  constexpr std::int64_t kGib = 1024;
  return memory_mib < kGib ? memory_mib : (memory_mib + kGib - 1) / kGib * kGib;
}

// Nothing to start: the lease's group limits processors and memory in the proportions of the share.
class SimulatedSharing : public lend::SharingDriver {
 public:
  Result<lend::Verified> set_up(const lend::Lease& /*lease*/, const lend::Partition& /*partition*/,
                                lend::LeaseSetting& /*setting*/) override {
    return lend::Verified::kNo;
  }
  std::optional<lend::SharingProcesses> processes(const lend::PartitionId& /*id*/) override {
    return std::nullopt;
  }
  void before_kill(const lend::Lease& /*lease*/, const std::vector<int>& /*processes*/) override {}
  Result<Ok> take_down(const lend::Lease& /*lease*/) override { return Ok{}; }
};

// One MPS daemon per partition that has MPS leases; time slices by nvidia-smi.
class NvidiaSharing : public lend::SharingDriver {
 public:
  explicit NvidiaSharing(std::string folder) : folder_(std::move(folder)) {}

  Result<lend::Verified> set_up(const lend::Lease& lease, const lend::Partition& partition,
                                lend::LeaseSetting& setting) override {
    const auto holding =
        std::find_if(lease.holdings.begin(), lease.holdings.end(),
                     [&](const lend::Holding& each) { return each.partition == partition.id; });
    if (holding == lease.holdings.end()) {
      return lend::Verified::kNo;
    }
    if (holding->kind == lend::SliceKind::kTimeSlice) {
      return set_up_time_slices(lease, partition);
    }
    Shared& shared = shared_[partition.id];
    shared.leases[lease.id] = *holding;
    partition::MpsControl control = control_of(partition.id);
    SEPTET_TRY(control.start());
    setting.mps_pipe_directory = control.pipe_folder();
    // Clients can only go below the daemon's defaults, so these have to admit the largest.
    partition::MpsDefaults defaults{.thread_percent = 1, .memory_mib = 1};
    for (const auto& [id, each] : shared.leases) {
      defaults.thread_percent = std::max(defaults.thread_percent, each.percent);
      defaults.memory_mib = std::max(*defaults.memory_mib, readable_limit(each.memory_mib));
    }
    SEPTET_TRY(control.set_defaults(defaults));
    const bool all_alike =
        defaults.thread_percent == holding->percent && defaults.memory_mib == holding->memory_mib;
    return all_alike ? lend::Verified::kYes : lend::Verified::kNo;
  }

  std::optional<lend::SharingProcesses> processes(const lend::PartitionId& id) override {
    const auto found = shared_.find(id);
    if (found == shared_.end() || found->second.leases.empty() ||
        found->second.leases.begin()->second.kind != lend::SliceKind::kMps) {
      return std::nullopt;
    }
    partition::MpsControl control = control_of(id);
    const Result<std::vector<int>> servers = control.servers();
    const Result<std::vector<int>> clients = control.clients();
    // A daemon that does not answer limits nobody.
    return servers.ok() && clients.ok() ? lend::SharingProcesses{*servers, *clients}
                                        : lend::SharingProcesses{};
  }

  void before_kill(const lend::Lease& lease, const std::vector<int>& processes) override {
    for (const lend::Holding& holding : lease.holdings) {
      if (holding.kind == lend::SliceKind::kMps && shared_.contains(holding.partition)) {
        partition::MpsControl control = control_of(holding.partition);
        for (const int pid : processes) {
          // A daemon that does not answer must not keep a lease alive.
          (void)control.terminate_client(pid);
        }
      }
    }
  }

  Result<Ok> take_down(const lend::Lease& lease) override {
    for (const lend::Holding& holding : lease.holdings) {
      const auto found = shared_.find(holding.partition);
      if (found == shared_.end()) {
        continue;
      }
      found->second.leases.erase(lease.id);
      if (!found->second.leases.empty()) {
        continue;
      }
      if (holding.kind == lend::SliceKind::kMps) {
        SEPTET_TRY(control_of(holding.partition).quit(kServerGrace));
      }
      shared_.erase(found);
    }
    return Ok{};
  }

 private:
  struct Shared {
    std::map<lend::LeaseId, lend::Holding> leases;
  };

  Result<lend::Verified> set_up_time_slices(const lend::Lease& lease,
                                            const lend::Partition& partition) {
    const bool is_first = !shared_.contains(partition.id);
    shared_[partition.id].leases[lease.id] = lease.holdings.front();
    if (is_first && partition.is_whole_gpu()) {
      // Without the rights the GPU keeps its default length, which also works.
      (void)partition::TimeSliceDriver().set(
          partition.id.value(),
          partition::parse_slice_length(partition.time_slice).value_or(kShortTurns));
    }
    return lend::Verified::kNo;  // no technique limits memory here
  }

  partition::MpsControl control_of(const lend::PartitionId& id) const {
    return partition::MpsControl(
        {.folder = fmt::format("{}/mps/{}", folder_, id.value()), .device = id.value()});
  }

  std::string folder_;
  std::map<lend::PartitionId, Shared> shared_;
};

}  // namespace

std::unique_ptr<lend::SharingDriver> make_sharing_driver(const gpu::DriverInfo& info,
                                                         const std::string& run_folder) {
  if (info.simulated) {
    return std::make_unique<SimulatedSharing>();
  }
  return std::make_unique<NvidiaSharing>(run_folder);
}

}  // namespace septet::agent
