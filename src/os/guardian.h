// Guardian: a small process beside ours that outlives even a kill -9 of ours, and then removes what
// we left: control groups with what runs in them, and folders (see os/owner_tag.h).
//
// Owned by a verb, started before its first thread: the guardian is forked without exec. It is in a
// session of its own, so a Ctrl-C or a closed terminal does not reach it. At a normal end it is
// ended first, and there is nothing for it to do.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>

#include "base/result.h"
#include "os/cgroup.h"

namespace septet::os {

class Guardian {
 public:
  // Without mounts only folders are looked after.
  static Result<std::unique_ptr<Guardian>> start(const std::optional<CgroupMounts>& mounts);
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

 private:
  explicit Guardian(pid_t pid) : pid_(pid) {}
  pid_t pid_;
};

}  // namespace septet::os
