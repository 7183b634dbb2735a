// Who holds a GPU: processes with its device files open or mapped, with user, unit and container,
// and the kernel modules that keep it; read from /proc.
//
// What /proc says is a moment's picture. `root` is put before every path (SEPTET_SYSROOT in tests).
// Free functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "gpu/types.h"

namespace septet::partition {

struct Holder {
  std::int64_t pid = 0;
  std::string name;       // "python3"
  std::string user;       // "alice", or the number where there is no name
  std::string unit;       // "nvidia-dcgm.service"; empty outside of units
  std::string container;  // the first 12 digits of its id; empty outside of containers
  std::string hint;       // how this well-known program is stopped; may be empty
  std::optional<gpu::GpuInstanceId> gpu_instance;  // the part it holds; nothing: the GPU as such
  bool ours = false;                               // septet itself: --drain may ask it to leave

  // "nv-hostengine (pid 812, user root, unit nvidia-dcgm.service)".
  std::string text() const;
};

// Those that the driver names and, on a real GPU, those that have its device files open.
std::vector<Holder> find_holders(const gpu::GpuState& state, bool simulated,
                                 const std::string& root);

// Kernel modules that use the driver and block a reset: "nvidia_drm", "nvidia_uvm (3 users)".
std::vector<std::string> blocking_modules(const std::string& root);

// "held by A, B and C; stop them with ...": for errors.
std::string holders_text(const std::vector<Holder>& holders);
std::string holders_hint(const std::vector<Holder>& holders);

// Sends SIGTERM to our own among them and waits until all have left, at most this long. Returns
// those still there.
std::vector<Holder> drain(std::vector<Holder> holders, Duration timeout);

// What stands before every path: $SEPTET_SYSROOT, normally empty.
std::string standard_root();

}  // namespace septet::partition
