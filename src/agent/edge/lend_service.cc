#include "agent/edge/lend_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "agent/edge/error_json.h"
#include "agent/edge/nvidia_devices.h"
#include "agent/lease_layout.h"
#include "agent/slice_share.h"
#include "base/text.h"
#include "lend/inventory.h"
#include "os/durable_file.h"
#include "os/machine.h"
#include "partition/advisor_gates.h"
#include "partition/edge/apply.h"
#include "partition/edge/mps_control.h"

namespace septet::agent {

namespace {

unsigned major_of(const std::string& version) {
  return static_cast<unsigned>(parse_uint(split(version, '.').front()).value_or(0));
}

std::string folder_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

}  // namespace

Result<std::unique_ptr<LendService>> LendService::start(os::EventLoop& loop, gpu::GpuDriver& driver,
                                                        lend::SharingDriver* sharing,
                                                        const LendServiceOptions& options) {
  std::unique_ptr<LendService> service(new LendService(driver, sharing));
  SEPTET_TRY(service->build(loop, options));
  return service;
}

Result<Ok> LendService::build(os::EventLoop& loop, const LendServiceOptions& options) {
  const Result<gpu::DriverInfo> info = driver_.info();
  SEPTET_TRY(info);
  info_ = *info;
  sharing_rules_ = options.config.sharing;
  SEPTET_TRY(os::make_folder(folder_of(options.ledger)));
  SEPTET_TRY(os::make_folder(folder_of(options.socket)));
  Result<std::unique_ptr<lend::LedgerFile>> file = lend::LedgerFile::open(options.ledger);
  SEPTET_TRY(file);
  file_ = *std::move(file);

  lend::CgroupGroundOptions ground;
  ground.prefix = lend::ledger_tag(options.ledger);
  ground.is_simulated = info_.simulated;
  ground.sharing = sharing_;
  if (info_.simulated) {
    ground.limits = [this](const lend::Partition& partition, const lend::Holding& holding) {
      return limits_of(partition, holding);
    };
  } else {
    ground.device_rules = [this](const std::vector<lend::Partition>& partitions) {
      return nvidia_device_rules(states_, partitions, NvidiaDeviceFiles{});
    };
    ground.gpu_activity = [this](const std::vector<int>& pids) { return gpu_activity(pids); };
  }
  ground_ = std::make_unique<lend::CgroupGround>(os::find_cgroups(), std::move(ground));
  note_ = info_.simulated ? "simulated GPU" : "";
  if (!ground_->why_advisory().empty()) {
    note_ += (note_.empty() ? "" : "; ") + std::string("limits are advisory: ") +
             ground_->why_advisory();
  }

  Result<std::unique_ptr<lend::Lender>> lender = lend::Lender::start(
      loop, *file_, *ground_, [this](const auto& known) { return observe(known); },
      [this](const lend::ChangeLayout& change) { return change_layout(change); },
      options.config.lender);
  SEPTET_TRY(lender);
  lender_ = *std::move(lender);
  api_ = std::make_unique<LeaseApi>(*lender_, note_);
  Result<std::unique_ptr<ControlServer>> server = ControlServer::listen(
      loop, options.socket,
      [this](ControlExchange& exchange) {
        if (!api_->handle(exchange)) {
          const Error error = make_error(
              ErrorKind::kNotFound,
              fmt::format("there is no {} {}", exchange.request().method, exchange.request().path));
          exchange.respond(404, error_json(error).dump());
        }
      },
      ControlServerOptions{});
  SEPTET_TRY(server);
  server_ = *std::move(server);
  return Ok{};
}

Result<lend::PartitionsObserved> LendService::observe(const std::set<std::int64_t>& known) {
  const Result<unsigned> count = driver_.gpu_count();
  SEPTET_TRY(count);
  std::vector<gpu::GpuState> states;
  lend::PartitionsObserved observed;
  lend::InventoryFacts facts;
  facts.known_processes = known;
  // Whether MPS is really there shows when a share is set up; the limit is the driver's.
  facts.mps_clients = partition::mps_client_limit(major_of(info_.driver_version));
  // Servers of a simulated GPU are groups, which any user may have.
  facts.mps_serves_several_users = info_.simulated || major_of(info_.driver_version) >= 615;
  for (unsigned index = 0; index < *count; ++index) {
    Result<gpu::GpuState> state = driver_.observe(index);
    SEPTET_TRY(state);
    const SharingRule* rule = rule_for(sharing_rules_, *state);
    const std::map<lend::PartitionId, lend::SharingProcesses> shared = shared_on(*state, facts);
    for (const auto& [id, processes] : shared) {
      facts.known_processes.insert(processes.servers.begin(), processes.servers.end());
    }
    for (lend::Partition& partition : partitions_of(*state, facts)) {
      if (const auto daemon = shared.find(partition.id); daemon != shared.end()) {
        partition.outside = partition::unlimited_processes(
            partition::unlimited_processes(processes_on(*state, partition), daemon->second.servers),
            daemon->second.clients);
      }
      observed.partitions.push_back(rule == nullptr ? std::move(partition)
                                                    : under_rule(std::move(partition), *rule));
    }
    // Only where MIG devices are lent as such is a GPU re-laid for one.
    if (rule == nullptr || rule->technique == SharingTechnique::kAny ||
        rule->technique == SharingTechnique::kMig) {
      for (lend::OfferedProfile& offered : lend::offered_by(*state)) {
        observed.offered.push_back(std::move(offered));
      }
    }
    states.push_back(*std::move(state));
  }
  states_ = std::move(states);
  return observed;
}

std::map<lend::PartitionId, lend::SharingProcesses> LendService::shared_on(
    const gpu::GpuState& state, const lend::InventoryFacts& facts) const {
  std::map<lend::PartitionId, lend::SharingProcesses> shared;
  if (sharing_ == nullptr) {
    return shared;
  }
  for (const lend::Partition& partition : partitions_of(state, facts)) {
    if (auto processes = sharing_->processes(partition.id)) {
      shared.emplace(partition.id, *std::move(processes));
    }
  }
  return shared;
}

// A process that has no context on any GPU runs no kernels there; of one that has, nobody can tell.
lend::Activity LendService::gpu_activity(const std::vector<int>& processes) const {
  for (const gpu::GpuState& state : states_) {
    for (const gpu::GpuProcess& process : state.processes) {
      if (std::find(processes.begin(), processes.end(), process.pid) != processes.end()) {
        return lend::Activity::kUnknown;
      }
    }
  }
  return lend::Activity::kIdle;
}

lend::LayoutChangeEnded LendService::change_layout(const lend::ChangeLayout& change) {
  lend::LayoutChangeEnded answer{change.id, lend::LayoutOutcome::kImpossibleNow, {}};
  // From what was observed, not from the lender: it may still be starting.
  unsigned serving = 0;
  for (const gpu::GpuState& state : states_) {
    for (const lend::Partition& partition : lend::partitions_of(state, lend::InventoryFacts{})) {
      const bool is_idle =
          std::find(change.idle.begin(), change.idle.end(), partition.id) != change.idle.end();
      serving += is_idle && could_serve(partition, change.want) ? 1 : 0;
    }
  }
  const unsigned missing = change.want.count - std::min(change.want.count, serving);
  std::optional<LeaseRoom> best;
  unsigned index = 0;
  for (unsigned i = 0; i < states_.size(); ++i) {
    const Result<gpu::GpuState> state = driver_.observe(i);
    if (!state.ok()) {
      continue;
    }
    std::optional<LeaseRoom> room = find_room(*state, change.want, missing, change.idle);
    const auto cost = [](const LeaseRoom& each) {
      return std::pair(!each.only_idle, each.slices_destroyed);
    };
    if (room && (!best || cost(*room) < cost(*best))) {
      best = std::move(room);
      index = i;
    }
  }
  if (!best || missing == 0) {
    return answer;
  }
  if (!best->only_idle) {
    answer.needs = best->dropped;
    return answer;
  }
  const Result<partition::ApplyReport> report = partition::apply_layout(
      driver_, index, best->after, {.state = partition::StateFolder::standard(info_.simulated)});
  const bool done = report.ok() && !error_of(*report);
  answer.outcome = done ? lend::LayoutOutcome::kDone : lend::LayoutOutcome::kFailed;
  return answer;
}

// What the part of a simulated partition may use of this machine. An MPS share gets its part of the
// processors; a time-sliced tenant may use all of them when it is alone, as on the real thing.
os::CgroupLimits LendService::limits_of(const lend::Partition& partition,
                                        const lend::Holding& holding) const {
  const os::Machine machine = os::this_machine();
  const MachineSize size{static_cast<double>(machine.cpus), machine.memory_bytes};
  SliceShare share;
  for (const gpu::GpuState& state : states_) {
    if (state.uuid != partition.gpu) {
      continue;
    }
    share = device_share(state, size);
    for (const gpu::GpuInstanceProfile& profile : state.profiles) {
      if (profile.name == partition.profile) {
        share = slice_share(state, profile, size);
      }
    }
  }
  os::CgroupLimits limits{share.cpus, share.period, share.memory_bytes};
  if (holding.kind == lend::SliceKind::kMps) {
    limits.cpus = limits.cpus * holding.percent / 100;
  }
  if (is_shared(holding.kind) && partition.memory_mib > 0) {
    limits.memory_bytes = static_cast<std::int64_t>(static_cast<double>(limits.memory_bytes) *
                                                    static_cast<double>(holding.memory_mib) /
                                                    static_cast<double>(partition.memory_mib));
  }
  return limits;
}

}  // namespace septet::agent
