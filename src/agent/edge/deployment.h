// Deployment: one configuration of an experiment, running: the GPU laid out, a replica's process on
// each partition (or all on the undivided device), and a balancer in front of them.
//
//   load -> balancer -> Unix socket -> replica in its control group (partition 0)
//                    -> Unix socket -> replica in its control group (partition 1) ...
//
// Owned by an experiment, used by one thread. On a simulated GPU every partition is a control group
// with its slice's share of the machine; where groups cannot be made the replicas run unlimited.
// Destroying it ends the balancer, the replicas and the groups; the layout of the GPU stays.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/edge/replica_set.h"
#include "agent/experiment_plan.h"
#include "agent/slice_share.h"
#include "balance/edge/proxy.h"
#include "base/result.h"
#include "gpu/gpu_driver.h"
#include "os/cgroup.h"
#include "partition/edge/state_folder.h"

namespace septet::agent {

struct DeploymentOptions {
  std::string program;           // septet, to run `septet serve`
  std::string model_repository;  // folder
  std::string model;             // the one that is served
  std::string runtime_folder;    // for sockets: a short path
  std::string log_folder;        // for the replicas' logs
  std::string state_folder;      // of the partition room's journal
  unsigned gpu = 0;              // which one
  // Nothing: no limits (a real GPU, or no rights).
  std::optional<os::CgroupMounts> cgroups{};
  MachineSize machine{};                           // what the device may use of it
  std::vector<std::string> first_replica_extra{};  // more arguments of the first replica
  Duration start_timeout = seconds(180);
};

class Deployment {
 public:
  // Returns once every replica is ready and reached by the balancer.
  static Result<std::unique_ptr<Deployment>> start(gpu::GpuDriver& driver,
                                                   const PlannedConfiguration& configuration,
                                                   const DeploymentOptions& options,
                                                   const std::atomic<bool>& interrupted);
  Deployment(const Deployment&) = delete;
  Deployment& operator=(const Deployment&) = delete;

  // Where clients go.
  const os::Endpoint& endpoint() const { return proxy_->endpoint(); }
  // The replicas' own sockets. With streams there is one server, whatever the number of replicas.
  std::vector<os::Endpoint> replica_endpoints() const;
  std::vector<std::string> replica_names() const;

  ReplicaSet& replicas() { return *replicas_; }
  balance::ProxyStats balancer_stats() const { return proxy_->stats(); }
  // Of all its groups together; zero without groups.
  os::CgroupUsage usage() const;
  // Scales the device's memory so that its smallest slice has so much; undivided groups get the
  // whole device's. Nothing happens without groups.
  Result<Ok> scale_memory(std::int64_t slice_bytes);

 private:
  // One process to run.
  struct Place {
    std::string name;            // of the replica
    std::string visible_device;  // value of CUDA_VISIBLE_DEVICES
    std::size_t group = 0;       // index of its group
  };

  Deployment(const DeploymentOptions& options, const PlannedConfiguration& configuration)
      : options_(options), configuration_(configuration) {}

  Result<Ok> lay_out(gpu::GpuDriver& driver);
  Result<Ok> place_on_partitions(const gpu::GpuState& state);
  void place_on_device(const gpu::GpuState& state);
  Result<Ok> make_groups();
  Result<Ok> start_replicas(const std::atomic<bool>& interrupted);
  Result<Ok> start_balancer(const std::atomic<bool>& interrupted);
  ReplicaSpec spec(std::size_t index) const;
  os::Endpoint endpoint_of(std::size_t index) const;

  DeploymentOptions options_;
  PlannedConfiguration configuration_;
  std::vector<SliceShare> shares_;  // by group
  double slices_of_memory_ = 1;     // the device's memory in those of its smallest slice
  std::vector<Place> places_;

  // In the order in which they depend on each other; destroyed from the last to the first.
  std::vector<std::unique_ptr<os::Cgroup>> groups_;
  std::unique_ptr<ReplicaSet> replicas_;
  std::unique_ptr<balance::Proxy> proxy_;
};

}  // namespace septet::agent
