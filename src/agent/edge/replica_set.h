// ReplicaSet: runs replicas: starts their processes, watches over their health, restarts them with
// back-off, and leaves none behind.
//
//   auto replicas = ReplicaSet::start(options);
//   (*replicas)->add(spec); ...
//   (*replicas)->wait_ready(seconds(60), interrupted);
//
// Owned by a verb; runs a thread of its own from start() until it is destroyed, which also is the
// thread that the children die with when this process is killed. Every method may be called from
// any other thread. What each replica does next is decided by ReplicaSupervisor.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/replica_supervisor.h"
#include "base/result.h"
#include "os/endpoint.h"
#include "os/process.h"

namespace septet::agent {

struct ReplicaSpec {
  std::string name;            // unique in the set
  os::ProcessOptions process;  // its standard output and error go to log_path
  os::Endpoint endpoint;       // where it will listen
  std::string health_target;   // e.g. "/v2/models/densenet_onnx/ready": 200 = ready
  std::string log_path;        // appended to
};

struct ReplicaStatus {
  std::string name{};
  ReplicaState state = ReplicaState::kStopped;
  pid_t pid = 0;  // 0 = no process now
  std::uint64_t restarts = 0;
  std::string last_failure{};
};

class ReplicaSet {
 public:
  // Called from the set's thread whenever the names of the ready replicas have changed.
  using OnChange = std::function<void(const std::vector<std::string>& ready)>;

  static Result<std::unique_ptr<ReplicaSet>> start(const SupervisorOptions& options,
                                                   OnChange on_change = {});
  // Asks every replica to end, kills what does not within the grace, waits for all.
  ~ReplicaSet();
  ReplicaSet(const ReplicaSet&) = delete;
  ReplicaSet& operator=(const ReplicaSet&) = delete;

  // Adds a replica and starts it. kUsage when the name is taken.
  Result<Ok> add(const ReplicaSpec& spec);
  // Drains and stops a replica; its status stays. kNotFound for an unknown name.
  Result<Ok> stop(const std::string& name, Duration drain);
  // Sends a signal to a replica's process. kPrecondition when there is none now.
  Result<Ok> send_signal(const std::string& name, int signal);

  std::vector<ReplicaStatus> status() const;

  // Waits until all are ready. Ends early when `interrupted` is set or one has failed for good; the
  // error names the replica, why, and the last line of its log.
  Result<Ok> wait_ready(Duration timeout, const std::atomic<bool>& interrupted) const;

 private:
  class Impl;
  explicit ReplicaSet(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace septet::agent
