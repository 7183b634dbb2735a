// SimulationStore: a simulated node that all processes of a machine share, in a directory.
//
//   DIR/state   the node (simulation_codec.h); replaced by rename, so a reader sees old or new
//   DIR/lock    flock: shared for a read, exclusive for a change; a dead holder releases it
//   DIR/sysroot /proc and /sys as clients read them, once render() made it; kept up to date then
//
// Every call opens its own descriptors: nothing is shared with a forked child, nothing needs
// closing at the end. A client process that has died is dropped before each call, as the driver
// does. Thread-safe; owned by the library (simnvml) or by a verb.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "base/result.h"
#include "gpu/simulated_node.h"

namespace septet::gpu {

class SimulationStore {
 public:
  explicit SimulationStore(std::string directory) : directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }

  // Makes the directory with this node; kPrecondition when there is one already.
  Result<Ok> create(const SimulatedNode& node) const;
  bool exists() const;
  // Removes what create() made. kNotFound when there is nothing.
  Result<Ok> destroy() const;

  Result<SimulatedNode> read() const;
  // Changes the node under the exclusive lock; stored only when it differs afterwards.
  Result<Ok> update(const std::function<void(SimulatedNode&)>& change) const;
  // Writes DIR/sysroot (simulated_sysroot.h); from then on every change of instances renews it.
  Result<Ok> render() const;

 private:
  Result<SimulatedNode> load() const;
  Result<Ok> store(const SimulatedNode& node) const;
  Result<Ok> write_sysroot(const SimulatedNode& node) const;
  std::string path(const char* name) const { return directory_ + "/" + name; }

  std::string directory_;
  // The last node read, reused while the file's generation says that it is current.
  mutable std::mutex mutex_;
  mutable SimulatedNode cached_;
  mutable bool has_cached_ = false;
};

// The start time of a process as SimulatedClient wants it; 0 when there is none.
std::uint64_t process_start_time(std::int64_t pid);

}  // namespace septet::gpu
