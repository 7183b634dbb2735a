#include "os/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "os/clock.h"
#include "os/owner_tag.h"
#include "os/unique_fd.h"

namespace septet::os {
namespace {

constexpr std::string_view kPrefix = "septet.";
constexpr Duration kKillPatience = seconds(10);  // for what is in uninterruptible sleep
constexpr int kPollMs = 2;
constexpr const char* kHint =
    "run as root, or where /sys/fs/cgroup is writable, to have real limits";

Error mount_error(ErrorKind kind, const std::string& why) {
  return make_error(kind, "cannot limit processes by control groups: " + why, kHint);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// 0, or the errno.
int try_write(const std::string& path, const std::string& text) {
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() && write(fd.get(), text.data(), text.size()) == ssize_t(text.size()) ? 0
                                                                                         : errno;
}

Result<Ok> write_file(const std::string& path, const std::string& text) {
  const int reason = try_write(path, text);
  if (reason != 0) {
    const bool denied = reason == EACCES || reason == EPERM || reason == EROFS;
    return make_error(denied ? ErrorKind::kPermission : ErrorKind::kFailed,
                      fmt::format("cannot write '{}' to {}: {}", text, path, strerror(reason)));
  }
  return Ok{};
}

// The number behind "key " in a flat keyed file, or 0.
std::uint64_t keyed_value(const std::string& text, std::string_view key) {
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ' ') {
      return parse_uint(trim(line.substr(key.size()))).value_or(0);
    }
  }
  return 0;
}

bool has_word(std::string_view text, std::string_view word, char separator) {
  for (const std::string_view piece : split(trim(text), separator)) {
    if (piece == word) {
      return true;
    }
  }
  return false;
}

struct MountTable {
  std::string v1_cpu;
  std::string v1_memory;
  std::string v2;
};

MountTable read_mounts(const std::string& mounts_file) {
  MountTable table;
  std::ifstream file(mounts_file);
  std::string line;
  while (std::getline(file, line)) {
    const auto fields = split(line, ' ');
    if (fields.size() < 4) {
      continue;
    }
    const std::string folder(fields[1]);
    if (fields[2] == "cgroup2" && table.v2.empty()) {
      table.v2 = folder;
    }
    // The first mount of each: later ones are copies in containers and chroots.
    if (fields[2] == "cgroup" && has_word(fields[3], "cpu", ',') && table.v1_cpu.empty()) {
      table.v1_cpu = folder;
    }
    if (fields[2] == "cgroup" && has_word(fields[3], "memory", ',') && table.v1_memory.empty()) {
      table.v1_memory = folder;
    }
  }
  return table;
}

Result<Ok> check_writable(const std::string& folder) {
  if (access(folder.c_str(), W_OK) != 0) {
    return mount_error(ErrorKind::kPermission,
                       fmt::format("{} is not writable: {}", folder, strerror(errno)));
  }
  return Ok{};
}

Result<CgroupMounts> use_v1(const MountTable& table) {
  SEPTET_TRY(check_writable(table.v1_cpu));
  SEPTET_TRY(check_writable(table.v1_memory));
  if (access((table.v1_cpu + "/cpu.cfs_period_us").c_str(), F_OK) != 0) {
    return mount_error(ErrorKind::kPrecondition, "this kernel has no processor time limits");
  }
  return CgroupMounts{CgroupVersion::kV1, {table.v1_cpu, table.v1_memory}};
}

Result<CgroupMounts> use_v2(const std::string& folder) {
  const std::string offered = read_file(folder + "/cgroup.controllers");
  std::string wanted;
  const std::string handed_on = read_file(folder + "/cgroup.subtree_control");
  for (const char* controller : {"cpu", "memory"}) {
    if (!has_word(offered, controller, ' ')) {
      return mount_error(ErrorKind::kPrecondition,
                         fmt::format("{} offers no {} controller", folder, controller));
    }
    if (!has_word(handed_on, controller, ' ')) {
      wanted += std::string(wanted.empty() ? "+" : " +") + controller;
    }
  }
  SEPTET_TRY(check_writable(folder));
  if (!wanted.empty()) {
    const int reason = try_write(folder + "/cgroup.subtree_control", wanted);
    if (reason == EBUSY) {
      // Only a group without processes of its own hands controllers on (cgroups(7)): the top group
      // of a container has the container's.
      return make_error(
          ErrorKind::kPrecondition,
          "cannot limit processes by control groups: there are processes in " + folder,
          "move them into a group below it, e.g. " + folder + "/init");
    }
    if (reason != 0) {
      return mount_error(ErrorKind::kPermission, fmt::format("{} does not hand on '{}': {}", folder,
                                                             wanted, strerror(reason)));
    }
  }
  return CgroupMounts{CgroupVersion::kV2, {folder}};
}

// septet.OWNERTAG.NAME
std::string group_name(const std::string& name) {
  return fmt::format("{}{}.{}", kPrefix, owner_tag(), name);
}

// Whether a folder name is that of a group whose owner, visible from here, is gone.
bool is_orphan(std::string_view name) {
  const std::size_t last_dot = name.rfind('.');
  return name.starts_with(kPrefix) && last_dot > kPrefix.size() &&
         owner_is_gone(name.substr(kPrefix.size(), last_dot - kPrefix.size()));
}

std::vector<int> processes_in(const std::string& folder) {
  std::vector<int> pids;
  std::ifstream file(folder + "/cgroup.procs");
  int pid = 0;
  while (file >> pid) {
    pids.push_back(pid);
  }
  return pids;
}

// Kills until every folder is empty. What forks while it is being listed is met in the next round.
Result<Ok> kill_processes(const std::vector<std::string>& folders) {
  const Instant deadline = now() + kKillPatience;
  while (true) {
    bool empty = true;
    for (const std::string& folder : folders) {
      // A dying process needs processor time: a used-up quota must not hold it up.
      try_write(folder + "/cpu.cfs_quota_us", "-1");
      try_write(folder + "/cgroup.kill", "1");
      for (const int pid : processes_in(folder)) {
        empty = false;
        kill(pid, SIGKILL);
      }
    }
    if (empty) {
      return Ok{};
    }
    if (now() > deadline) {
      return make_error(
          ErrorKind::kFailed,
          fmt::format("processes in control group {} do not end when killed", folders.front()));
    }
    poll(nullptr, 0, kPollMs);
  }
}

Result<Ok> remove_folders(const std::vector<std::string>& folders) {
  const Instant deadline = now() + kKillPatience;
  for (const std::string& folder : folders) {
    // Busy for a moment after its last process has ended (cgroups(7)).
    while (rmdir(folder.c_str()) != 0 && errno != ENOENT) {
      if (errno != EBUSY || now() > deadline) {
        return make_error(ErrorKind::kFailed, fmt::format("cannot remove control group {}: {}",
                                                          folder, strerror(errno)));
      }
      poll(nullptr, 0, kPollMs);
    }
  }
  return Ok{};
}

std::int64_t to_us(Duration duration) { return duration / microseconds(1); }

Result<Ok> limit_cpu_v1(const std::string& folder, const CgroupLimits& limits) {
  // Quota off, then the period, then the quota: any other order may pass through a state that the
  // kernel refuses.
  SEPTET_TRY(write_file(folder + "/cpu.cfs_quota_us", "-1"));
  if (limits.cpus <= 0) {
    return Ok{};
  }
  const std::int64_t period_us = to_us(limits.period);
  SEPTET_TRY(write_file(folder + "/cpu.cfs_period_us", std::to_string(period_us)));
  return write_file(folder + "/cpu.cfs_quota_us",
                    fmt::format("{:.0f}", std::floor(double(period_us) * limits.cpus)));
}

Result<Ok> limit_cpu_v2(const std::string& folder, const CgroupLimits& limits) {
  const std::int64_t period_us = to_us(limits.period);
  const std::string quota =
      limits.cpus <= 0 ? "max" : fmt::format("{:.0f}", std::floor(double(period_us) * limits.cpus));
  return write_file(folder + "/cpu.max", fmt::format("{} {}", quota, period_us));
}

Result<Ok> limit_memory_v1(const std::string& folder, const CgroupLimits& limits) {
  const std::string bytes =
      limits.memory_bytes > 0 ? std::to_string(limits.memory_bytes) : std::string("-1");
  // The limit with swap may never be below the one without: lift it, then set both.
  const std::string with_swap = folder + "/memory.memsw.limit_in_bytes";
  try_write(with_swap, "-1");
  SEPTET_TRY(write_file(folder + "/memory.limit_in_bytes", bytes));
  try_write(with_swap, bytes);  // absent where the kernel does not account for swap
  return Ok{};
}

Result<Ok> limit_memory_v2(const std::string& folder, const CgroupLimits& limits) {
  const bool limited = limits.memory_bytes > 0;
  SEPTET_TRY(write_file(folder + "/memory.max",
                        limited ? std::to_string(limits.memory_bytes) : std::string("max")));
  try_write(folder + "/memory.swap.max", limited ? "0" : "max");  // absent without swap
  return Ok{};
}

}  // namespace

Result<CgroupMounts> find_cgroups_in(const std::string& mounts_file) {
  const MountTable table = read_mounts(mounts_file);
  if (!table.v1_cpu.empty() && !table.v1_memory.empty()) {
    return use_v1(table);
  }
  if (!table.v1_cpu.empty() || !table.v1_memory.empty()) {
    return mount_error(ErrorKind::kPrecondition,
                       "the cpu and memory controllers are in different hierarchies (hybrid)");
  }
  if (table.v2.empty()) {
    return mount_error(ErrorKind::kPrecondition, "no cgroup file system is mounted");
  }
  return use_v2(table.v2);
}

Result<CgroupMounts> find_cgroups() { return find_cgroups_in("/proc/self/mounts"); }

double available_cpus(const CgroupMounts& mounts) {
  cpu_set_t set;
  CPU_ZERO(&set);
  double cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  if (mounts.folders.empty()) {
    return cpus;
  }
  std::optional<double> quota;
  std::optional<double> period;
  if (mounts.version == CgroupVersion::kV1) {
    quota = parse_double(trim(read_file(mounts.folders[0] + "/cpu.cfs_quota_us")));
    period = parse_double(trim(read_file(mounts.folders[0] + "/cpu.cfs_period_us")));
  } else {
    const std::string text = read_file(mounts.folders[0] + "/cpu.max");
    const auto words = split(trim(text), ' ');
    if (words.size() == 2) {
      quota = parse_double(words[0]);
      period = parse_double(words[1]);
    }
  }
  return quota && period && *quota > 0 && *period > 0 ? std::min(cpus, *quota / *period) : cpus;
}

int sweep_cgroups(const CgroupMounts& mounts) {
  std::vector<std::string> orphans;
  for (const std::string& parent : mounts.folders) {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(parent.c_str()), closedir);
    while (folder != nullptr) {
      const dirent* entry = readdir(folder.get());
      if (entry == nullptr) {
        break;
      }
      if (is_orphan(entry->d_name)) {
        orphans.emplace_back(entry->d_name);
      }
    }
  }
  std::sort(orphans.begin(), orphans.end());
  orphans.erase(std::unique(orphans.begin(), orphans.end()), orphans.end());
  int removed = 0;
  for (const std::string& name : orphans) {
    std::vector<std::string> folders;
    for (const std::string& parent : mounts.folders) {
      folders.push_back(parent + "/" + name);
    }
    removed += kill_processes(folders).ok() && remove_folders(folders).ok() ? 1 : 0;
  }
  return removed;
}

Result<std::unique_ptr<Cgroup>> Cgroup::create(const CgroupMounts& mounts, const std::string& name,
                                               const CgroupLimits& limits) {
  std::unique_ptr<Cgroup> group(new Cgroup(mounts.version, {}));
  const std::string full_name = group_name(name);
  for (const std::string& parent : mounts.folders) {
    const std::string folder = parent + "/" + full_name;
    if (mkdir(folder.c_str(), 0755) != 0) {
      const bool denied = errno == EACCES || errno == EPERM || errno == EROFS;
      return make_error(denied ? ErrorKind::kPermission : ErrorKind::kFailed,
                        fmt::format("cannot make control group {}: {}", folder, strerror(errno)),
                        kHint);
    }
    group->folders_.push_back(folder);  // from here on the destructor removes it
  }
  SEPTET_TRY(group->set_limits(limits));
  return group;
}

Cgroup::~Cgroup() { (void)remove(); }

Result<Ok> Cgroup::remove() {
  SEPTET_TRY(kill_all());
  SEPTET_TRY(remove_folders(folders_));
  folders_.clear();
  return Ok{};
}

std::vector<std::string> Cgroup::procs_files() const {
  std::vector<std::string> files;
  for (const std::string& folder : folders_) {
    files.push_back(folder + "/cgroup.procs");
  }
  return files;
}

Result<Ok> Cgroup::set_limits(const CgroupLimits& limits) {
  if (version_ == CgroupVersion::kV1) {
    SEPTET_TRY(limit_cpu_v1(folders_.front(), limits));
    return limit_memory_v1(folders_.back(), limits);
  }
  SEPTET_TRY(limit_cpu_v2(folders_.front(), limits));
  return limit_memory_v2(folders_.front(), limits);
}

CgroupUsage Cgroup::usage() const {
  CgroupUsage usage;
  const std::string cpu = read_file(folders_.front() + "/cpu.stat");
  usage.periods = keyed_value(cpu, "nr_periods");
  usage.throttled_periods = keyed_value(cpu, "nr_throttled");
  if (version_ == CgroupVersion::kV1) {
    const std::string& memory = folders_.back();
    usage.memory_bytes = parse_int(trim(read_file(memory + "/memory.usage_in_bytes"))).value_or(0);
    usage.out_of_memory_kills = keyed_value(read_file(memory + "/memory.oom_control"), "oom_kill");
    return usage;
  }
  const std::string& folder = folders_.front();
  usage.cpu_time = microseconds(static_cast<std::int64_t>(keyed_value(cpu, "usage_usec")));
  usage.memory_bytes = parse_int(trim(read_file(folder + "/memory.current"))).value_or(0);
  usage.out_of_memory_kills = keyed_value(read_file(folder + "/memory.events"), "oom_kill");
  return usage;
}

std::vector<int> Cgroup::processes() const { return processes_in(folders_.back()); }

Result<Ok> Cgroup::kill_all() { return kill_processes(folders_); }

}  // namespace septet::os
