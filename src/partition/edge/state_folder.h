// StateFolder: where the partition room keeps what must outlive a process, per GPU.
//
//   STATE/gpus/GPU-UUID/lock       held (flock) by whoever changes this GPU
//                       journal    a change in hand; gone when it ended well
//                       desired    the layout that `restore` re-creates at boot
//
// STATE is $SEPTET_STATE_DIR, else /var/lib/septet for root, else $XDG_STATE_HOME/septet or
// ~/.local/state/septet. Simulated GPUs keep theirs under STATE/simulated. A value; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/types.h"
#include "os/unique_fd.h"
#include "partition/edge/layout_json.h"
#include "partition/transaction.h"

namespace septet::partition {

class StateFolder {
 public:
  explicit StateFolder(std::string path) : path_(std::move(path)) {}
  static StateFolder standard(bool simulated);

  const std::string& path() const { return path_; }
  std::string gpu_folder(const gpu::GpuUuid& gpu) const;
  std::string journal_path(const gpu::GpuUuid& gpu) const { return gpu_folder(gpu) + "/journal"; }
  std::string desired_path(const gpu::GpuUuid& gpu) const { return gpu_folder(gpu) + "/desired"; }

  // What an interrupted change left, or nothing. A damaged journal is an error that names it.
  Result<std::optional<Intent>> read_intent(const gpu::GpuUuid& gpu) const;
  Result<std::optional<StoredLayout>> read_desired(const gpu::GpuUuid& gpu) const;

 private:
  std::string path_;
};

// The exclusive right to change one GPU; given back at the end of its life, also by a crash.
class GpuLock {
 public:
  // kPrecondition names the process that holds it; kPermission when the folder cannot be written.
  static Result<GpuLock> take(const StateFolder& state, const gpu::GpuUuid& gpu);

 private:
  explicit GpuLock(os::UniqueFd fd) : fd_(std::move(fd)) {}
  os::UniqueFd fd_;
};

}  // namespace septet::partition
