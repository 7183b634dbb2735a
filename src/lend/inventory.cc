#include "lend/inventory.h"

#include <fmt/format.h>

#include <algorithm>

namespace septet::lend {

namespace {

const gpu::GpuInstanceProfile* profile_with(const gpu::GpuState& state, gpu::ProfileId id) {
  for (const gpu::GpuInstanceProfile& profile : state.profiles) {
    if (profile.id == id) {
      return &profile;
    }
  }
  return nullptr;
}

unsigned most_slices(const gpu::GpuState& state) {
  unsigned most = 1;
  for (const gpu::GpuInstanceProfile& profile : state.profiles) {
    most = std::max(most, profile.slices);
  }
  return most;
}

void mark_holder(Partition& partition, const gpu::GpuProcess& process) {
  partition.is_lendable = false;
  partition.why_not_lendable = fmt::format("held by process {} ({})", process.pid, process.name);
}

Partition mig_partition(const gpu::GpuState& state, const gpu::GpuInstance& instance,
                        const gpu::ComputeInstance& compute) {
  Partition partition;
  partition.id = PartitionId(compute.uuid.value());
  partition.gpu = state.uuid;
  const auto parts = static_cast<std::int64_t>(instance.compute_instances.size());
  partition.index =
      parts == 1 ? fmt::format("{}:{}", state.index, instance.id.value())
                 : fmt::format("{}:{}:{}", state.index, instance.id.value(), compute.id.value());
  if (const gpu::GpuInstanceProfile* profile = profile_with(state, instance.profile_id)) {
    const unsigned slices = compute.placement.size;
    partition.profile = slices == profile->slices || slices == 0
                            ? profile->name
                            : fmt::format("{}c.{}", slices, profile->name);
    // Compute instances of one GPU instance share its memory.
    partition.memory_mib = profile->memory_mib / parts;
    partition.share_permille = (slices == 0 ? profile->slices : slices) * 1000 / most_slices(state);
  }
  return partition;
}

bool is_inside(const gpu::GpuProcess& process, const gpu::GpuInstance& instance,
               const gpu::ComputeInstance& compute) {
  return process.gpu_instance == instance.id &&
         (!process.compute_instance || process.compute_instance == compute.id);
}

}  // namespace

std::vector<Partition> partitions_of(const gpu::GpuState& state, const InventoryFacts& facts) {
  std::vector<Partition> partitions;
  const auto is_foreign = [&](const gpu::GpuProcess& process) {
    return !facts.known_processes.contains(process.pid);
  };
  const auto finish = [&](Partition partition) {
    partition.mps_clients = facts.mps_clients;
    partition.mps_serves_several_users = facts.mps_serves_several_users;
    partitions.push_back(std::move(partition));
  };
  if (state.mig_current != gpu::MigMode::kEnabled) {
    Partition whole;
    whole.id = PartitionId(state.uuid.value());
    whole.gpu = state.uuid;
    whole.index = fmt::format("{}", state.index);
    whole.profile = "gpu";
    whole.memory_mib = state.memory_total_mib;
    whole.share_permille = 1000;
    for (const gpu::GpuProcess& process : state.processes) {
      if (is_foreign(process)) {
        mark_holder(whole, process);
      }
    }
    if (state.mig_pending != state.mig_current) {
      whole.is_lendable = false;
      whole.why_not_lendable = "a change of MIG mode is pending";
    }
    finish(std::move(whole));
    return partitions;
  }
  for (const gpu::GpuInstance& instance : state.instances) {
    for (const gpu::ComputeInstance& compute : instance.compute_instances) {
      Partition partition = mig_partition(state, instance, compute);
      for (const gpu::GpuProcess& process : state.processes) {
        if (is_foreign(process) && is_inside(process, instance, compute)) {
          mark_holder(partition, process);
        }
      }
      finish(std::move(partition));
    }
  }
  return partitions;
}

std::vector<int> processes_on(const gpu::GpuState& state, const Partition& partition) {
  const auto is_here = [&](const gpu::GpuProcess& process) {
    if (partition.is_whole_gpu()) {
      return partition.id.value() == state.uuid.value();
    }
    for (const gpu::GpuInstance& instance : state.instances) {
      for (const gpu::ComputeInstance& compute : instance.compute_instances) {
        if (compute.uuid.value() == partition.id.value()) {
          return is_inside(process, instance, compute);
        }
      }
    }
    return false;
  };
  std::vector<int> pids;
  for (const gpu::GpuProcess& process : state.processes) {
    if (is_here(process)) {
      pids.push_back(static_cast<int>(process.pid));
    }
  }
  return pids;
}

std::vector<OfferedProfile> offered_by(const gpu::GpuState& state) {
  std::vector<OfferedProfile> offered;
  if (state.mig_current == gpu::MigMode::kEnabled) {
    for (const gpu::GpuInstanceProfile& profile : state.profiles) {
      offered.push_back({state.uuid, profile.name, profile.memory_mib, profile.max_instances});
    }
  }
  return offered;
}

}  // namespace septet::lend
