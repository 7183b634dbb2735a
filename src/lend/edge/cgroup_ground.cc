#include "lend/edge/cgroup_ground.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "os/clock.h"
#include "os/process.h"

namespace septet::lend {

namespace {

// Less of one processor than this is a program that waits: an editor, a notebook server, a shell.
constexpr double kBusyShare = 0.02;
constexpr double kSmallestCpus = 0.1;  // 1 ms in 10, the least the kernel takes

}  // namespace

std::string ledger_tag(const std::string& ledger_path) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a
  std::error_code ignored;
  for (const char c : std::filesystem::weakly_canonical(ledger_path, ignored).string()) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  return fmt::format("{:08x}", hash & 0xFFFFFFFF);
}

CgroupGround::CgroupGround(Result<os::CgroupMounts> mounts, CgroupGroundOptions options)
    : options_(std::move(options)) {
  if (mounts.ok()) {
    mounts_ = *std::move(mounts);
  } else {
    why_advisory_ = mounts.error().text();
  }
}

std::string CgroupGround::group_prefix() const { return fmt::format("lease-{}-", options_.prefix); }

void CgroupGround::end_unknown(const std::set<LeaseId>& known) {
  const std::string prefix = group_prefix();
  for (const std::string& name :
       mounts_ ? os::LastingCgroup::list(*mounts_) : std::vector<std::string>()) {
    const auto number = name.starts_with(prefix)
                            ? parse_uint(std::string_view(name).substr(prefix.size()))
                            : std::nullopt;
    if (!number || known.contains(LeaseId(*number))) {
      continue;
    }
    // One that cannot be removed is found again at the next start.
    if (const auto group = os::LastingCgroup::open(*mounts_, name); group.ok()) {
      (void)(*group)->remove();
    }
  }
}

Result<LeaseSetting> CgroupGround::set_up(const Lease& lease,
                                          const std::vector<Partition>& partitions) {
  Entry& entry = entries_[lease.id];
  entry.lease = lease;
  entry.observed = os::now();
  LeaseSetting setting;
  setting.is_simulated = options_.is_simulated;
  if (mounts_ && entry.group == nullptr) {
    Result<std::unique_ptr<os::LastingCgroup>> group =
        os::LastingCgroup::open(*mounts_, group_prefix() + fmt::format("{}", lease.id.value()));
    SEPTET_TRY(group);
    entry.group = *std::move(group);
  }
  const Result<Verified> limited = limit(entry, partitions, setting);
  SEPTET_TRY(limited);
  bool is_enforced = *limited == Verified::kYes;
  for (const Holding& holding : lease.holdings) {
    if (!is_shared(holding.kind)) {
      continue;
    }
    if (options_.sharing == nullptr) {
      return make_error(ErrorKind::kPrecondition,
                        fmt::format("no driver for {} is at hand", to_string(holding.kind)));
    }
    for (const Partition& partition : partitions) {
      if (partition.id == holding.partition) {
        const Result<Verified> shared = options_.sharing->set_up(lease, partition, setting);
        SEPTET_TRY(shared);
        // On a simulated GPU the group's limits stand for those of the sharing daemon.
        is_enforced = options_.is_simulated ? is_enforced : *shared == Verified::kYes;
      }
    }
  }
  setting.is_enforced = is_enforced;
  return setting;
}

Result<Verified> CgroupGround::limit(Entry& entry, const std::vector<Partition>& partitions,
                                     LeaseSetting& setting) {
  if (entry.group == nullptr || partitions.empty()) {
    return Verified::kNo;
  }
  if (!options_.is_simulated) {
    if (!options_.device_rules) {
      return Verified::kNo;
    }
    const Result<std::vector<os::GuardedMajor>> rules = options_.device_rules(partitions);
    // Without the rules or the rights the lease still stands, as advice.
    return rules.ok() && entry.group->restrict_devices(*rules).ok() ? Verified::kYes
                                                                    : Verified::kNo;
  }
  os::CgroupLimits sum;
  for (const Holding& holding : entry.lease.holdings) {
    for (const Partition& partition : partitions) {
      if (partition.id == holding.partition && options_.limits) {
        const os::CgroupLimits part = options_.limits(partition, holding);
        sum.cpus += part.cpus;
        sum.memory_bytes += part.memory_bytes;
        sum.period = part.period;
      }
    }
  }
  sum.cpus = std::max(sum.cpus, kSmallestCpus);
  SEPTET_TRY(entry.group->set_limits(sum));
  setting.cpus = sum.cpus;
  setting.memory_bytes = sum.memory_bytes;
  return Verified::kYes;
}

Result<Ok> CgroupGround::add_process(LeaseId lease, pid_t pid) {
  const auto found = entries_.find(lease);
  if (found == entries_.end()) {
    return make_error(ErrorKind::kNotFound, fmt::format("lease {} is not set up", lease.value()));
  }
  if (found->second.group != nullptr) {
    return found->second.group->add(pid);
  }
  const std::optional<std::uint64_t> started = os::process_start_time(pid);
  if (!started) {
    return make_error(ErrorKind::kNotFound, fmt::format("there is no process {}", pid));
  }
  found->second.loose.push_back({pid, *started});
  return Ok{};
}

std::vector<int> CgroupGround::processes(LeaseId lease) {
  const auto found = entries_.find(lease);
  if (found == entries_.end()) {
    return {};
  }
  Entry& entry = found->second;
  if (entry.group != nullptr) {
    return entry.group->processes();
  }
  std::erase_if(entry.loose, [](const KnownProcess& each) {
    return os::process_start_time(each.pid) != each.started;
  });
  std::vector<int> pids;
  for (const KnownProcess& each : entry.loose) {
    pids.push_back(each.pid);
  }
  return pids;
}

void CgroupGround::signal_all(Entry& entry, int signal) {
  if (entry.group != nullptr) {
    return entry.group->signal_all(signal);
  }
  for (const int pid : processes(entry.lease.id)) {
    ::kill(pid, signal);
  }
}

void CgroupGround::ask_to_end(LeaseId lease) {
  if (const auto found = entries_.find(lease); found != entries_.end()) {
    (void)set_paused(lease, os::Frozen::kNo);
    signal_all(found->second, SIGTERM);
    // What its user stopped cannot hear the request.
    signal_all(found->second, SIGCONT);
  }
}

void CgroupGround::kill(LeaseId lease) {
  const auto found = entries_.find(lease);
  if (found == entries_.end()) {
    return;
  }
  Entry& entry = found->second;
  if (options_.sharing != nullptr && !options_.is_simulated) {
    options_.sharing->before_kill(entry.lease, processes(lease));
  }
  if (entry.group != nullptr) {
    (void)set_paused(lease, os::Frozen::kNo);
  }
  signal_all(entry, SIGKILL);
}

Result<Ok> CgroupGround::set_paused(LeaseId lease, os::Frozen frozen) {
  const auto found = entries_.find(lease);
  if (found == entries_.end()) {
    return Ok{};
  }
  if (found->second.group != nullptr) {
    return found->second.group->set_frozen(frozen);
  }
  signal_all(found->second, frozen == os::Frozen::kYes ? SIGSTOP : SIGCONT);
  return Ok{};
}

Result<Ok> CgroupGround::take_down(LeaseId lease) {
  const auto found = entries_.find(lease);
  if (found == entries_.end()) {
    return Ok{};
  }
  Entry& entry = found->second;
  const bool shares = std::any_of(entry.lease.holdings.begin(), entry.lease.holdings.end(),
                                  [](const Holding& each) { return is_shared(each.kind); });
  if (shares && options_.sharing != nullptr) {
    SEPTET_TRY(options_.sharing->take_down(entry.lease));
  }
  if (entry.group != nullptr) {
    SEPTET_TRY(entry.group->remove());
  }
  entries_.erase(found);
  return Ok{};
}

Activity CgroupGround::observe(const Lease& lease) {
  const auto found = entries_.find(lease.id);
  if (found == entries_.end()) {
    return Activity::kUnknown;
  }
  Entry& entry = found->second;
  const Instant now = os::now();
  const std::vector<int> pids = processes(lease.id);
  if (entry.group != nullptr && !pids.empty()) {
    const Duration used = entry.group->processor_time();
    // Less than before: a process has ended, which is work too.
    const Duration more = used >= entry.processor_time ? used - entry.processor_time : used;
    const double share = to_seconds(more) / std::max(1e-3, to_seconds(now - entry.observed));
    entry.processor_time = used;
    entry.observed = now;
    if (share >= kBusyShare) {
      return Activity::kBusy;
    }
  }
  if (entry.group == nullptr && !pids.empty()) {
    return Activity::kUnknown;  // nobody counted their processor time
  }
  if (options_.is_simulated || pids.empty()) {
    return Activity::kIdle;
  }
  return options_.gpu_activity ? options_.gpu_activity(pids) : Activity::kUnknown;
}

}  // namespace septet::lend
