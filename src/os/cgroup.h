// Cgroup: a control group of ours that limits processor time and memory of what runs in it, and
// takes everything in it away at the end.
//
//   v1 (hybrid)   /sys/fs/cgroup/cpu/septet.NAME + /sys/fs/cgroup/memory/septet.NAME
//   v2            /sys/fs/cgroup/septet.NAME
//
// Both are told apart at run time (find_cgroups). Without the rights to make groups that is a clear
// error of kind kPermission or kPrecondition, and the caller goes on unlimited after saying so
// once. A group carries its owner in its name, so what a killed owner left can be found and removed
// (sweep_cgroups). Rules of the files: cgroups(7) and the kernel's admin-guide, cgroup-v1 and v2.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace septet::os {

enum class CgroupVersion { kV1, kV2 };

// Where groups can be made.
struct CgroupMounts {
  CgroupVersion version = CgroupVersion::kV2;
  // The folders in which a group is made: v1: one of the cpu, one of the memory controller; v2:
  // one.
  std::vector<std::string> folders;
};

// What the group may use. A long period would stall its processes for most of it and so fake every
// latency: the default of 10 ms keeps stalls short (measured: 18 ms at one seventh of two
// processors, against 84 ms at the kernel's default period of 100 ms).
struct CgroupLimits {
  double cpus = 0;  // processors' worth of time; 0 = no limit
  Duration period = milliseconds(10);
  std::int64_t memory_bytes = 0;  // 0 = no limit
};

struct CgroupUsage {
  Duration cpu_time{};                  // 0 on v1, whose cpu controller does not count it
  std::uint64_t periods = 0;            // in which anything wanted to run
  std::uint64_t throttled_periods = 0;  // of those: ended early by the limit
  std::int64_t memory_bytes = 0;
  std::uint64_t out_of_memory_kills = 0;
};

// Looks for a place where this process can make groups with processor and memory limits. The error
// says in one line why not.
Result<CgroupMounts> find_cgroups();
// The same with the mount table in a file of the format of proc_mounts(5), for tests.
Result<CgroupMounts> find_cgroups_in(const std::string& mounts_file);

// Processors' worth of time that groups made here can share: what this process may run on, or less
// where the folder's own group is limited.
double available_cpus(const CgroupMounts& mounts);

// Ends what runs in groups whose owner is gone and removes them; returns how many. Groups of
// another pid namespace are left alone: from here their owners cannot be seen.
int sweep_cgroups(const CgroupMounts& mounts);

class Cgroup {
 public:
  // Makes a group owned by this process. The name has letters, digits, '-' and '_'.
  static Result<std::unique_ptr<Cgroup>> create(const CgroupMounts& mounts, const std::string& name,
                                                const CgroupLimits& limits);
  // The group of exactly this folder name, for os/lasting_cgroup.h: made, or taken over with what
  // runs in it. Unlike create() it carries no owner, so no sweep removes it.
  static Result<std::unique_ptr<Cgroup>> open_unowned(const CgroupMounts& mounts,
                                                      const std::string& folder_name);
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
  // Kills what is in it and removes it, unless leave() was called.
  ~Cgroup();
  // The group and what runs in it stay when this object goes.
  void leave() { folders_.clear(); }

  // For ProcessOptions::cgroup_procs_files.
  std::vector<std::string> procs_files() const;
  // Changes the limits of the running group.
  Result<Ok> set_limits(const CgroupLimits& limits);
  CgroupUsage usage() const;
  // The processes in it now.
  std::vector<int> processes() const;
  // Kills everything in it, also what is being forked meanwhile, and waits until it is empty.
  Result<Ok> kill_all();
  // Kills and removes it now, and says when that does not work.
  Result<Ok> remove();

 private:
  Cgroup(CgroupVersion version, std::vector<std::string> folders)
      : version_(version), folders_(std::move(folders)) {}

  CgroupVersion version_;
  std::vector<std::string> folders_;  // of the group itself; v1: cpu, memory
};

}  // namespace septet::os
