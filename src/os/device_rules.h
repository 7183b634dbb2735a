// DeviceRules: which device nodes of some majors the processes of a control group may open.
//
// Everything that is not of a guarded major stays as it is: terminals, disks, /dev/null. cgroups v1
// takes one line per forbidden node (the kernel knows no "all but these" in a group that allows the
// rest); v2 takes an eBPF program of type cgroup-device, attached to the group's folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/unique_fd.h"

namespace septet::os {

// Character devices of one major.
struct GuardedMajor {
  unsigned major = 0;
  std::vector<unsigned> allowed_minors;
  // v1 only: every minor that exists or may come to exist.
  std::vector<unsigned> known_minors;
};

// v1: writes the forbidden nodes of the majors to devices.deny of the folder. Rules of an earlier
// call stay: a group is restricted once.
Result<Ok> deny_devices_v1(const std::string& devices_folder,
                           const std::vector<GuardedMajor>& majors);

// v2: attaches the program to the folder; it holds until the folder is removed. kPermission without
// the rights, kPrecondition without kernel support.
Result<Ok> attach_device_program(const std::string& v2_folder,
                                 const std::vector<GuardedMajor>& majors);

}  // namespace septet::os
