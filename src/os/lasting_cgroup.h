// LastingCgroup: a control group that outlives the process that made it, found again by its name.
//
//   v1 (hybrid)   .../cpu/septet-lasting.NAME, .../memory/..., .../freezer/..., .../devices/...
//   v2            .../septet-lasting.NAME
//
// For what must survive a crash of its daemon: a lease's processes run on, and the daemon that
// comes back opens the group by name. Owned by the daemon, used by one thread. Destroying the
// object leaves the group alone; remove() ends it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "os/cgroup.h"
#include "os/device_rules.h"

namespace septet::os {

enum class Frozen { kNo, kYes };

class LastingCgroup {
 public:
  // Makes the group, or takes over the one of that name with what runs in it. The name has letters,
  // digits, '-' and '_'.
  static Result<std::unique_ptr<LastingCgroup>> open(const CgroupMounts& mounts,
                                                     const std::string& name);
  // The names of all that exist.
  static std::vector<std::string> list(const CgroupMounts& mounts);

  LastingCgroup(const LastingCgroup&) = delete;
  LastingCgroup& operator=(const LastingCgroup&) = delete;
  ~LastingCgroup();

  Result<Ok> set_limits(const CgroupLimits& limits) { return group_->set_limits(limits); }
  // Moves a process, all its threads, into the group. kNotFound when it has ended.
  Result<Ok> add(pid_t pid);
  std::vector<int> processes() const { return group_->processes(); }
  CgroupUsage usage() const { return group_->usage(); }
  // Processor time that the processes in the group have used, ended ones not counted.
  Duration processor_time() const;

  void signal_all(int signal);
  // Stops or continues everything in the group without its parents noticing (unlike SIGSTOP).
  Result<Ok> set_frozen(Frozen frozen);
  Result<Ok> restrict_devices(const std::vector<GuardedMajor>& majors);
  // Kills everything in it, also what is frozen or being forked.
  Result<Ok> kill_all();
  // Kills and removes it.
  Result<Ok> remove();

 private:
  LastingCgroup(std::unique_ptr<Cgroup> group, CgroupVersion version, std::string folder_name)
      : group_(std::move(group)), version_(version), folder_name_(std::move(folder_name)) {}

  std::unique_ptr<Cgroup> group_;
  CgroupVersion version_;
  std::string folder_name_;
  std::string v2_folder_;       // empty on v1
  std::string freezer_folder_;  // v1; empty where there is none
  std::string devices_folder_;  // v1; empty where there is none
};

}  // namespace septet::os
