#include "gpu/simulated_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "gpu/simulated_instances.h"

namespace septet::gpu {
namespace {

MigMode mode_of(const SimulatedGpu& gpu, bool enabled) {
  if (!model_of(gpu).mig.supported) {
    return MigMode::kUnsupported;
  }
  return enabled ? MigMode::kEnabled : MigMode::kDisabled;
}

Result<Ok> done_or(NvmlCode code, const std::string& what) {
  if (code != NvmlCode::kSuccess) {
    return nvml_error(code, what);
  }
  return Ok{};
}

}  // namespace

GpuState state_of(const SimulatedGpu& gpu) {
  const GpuModel& model = model_of(gpu);
  GpuState state;
  state.index = gpu.config.index;
  state.uuid = GpuUuid(uuid_of(gpu));
  state.name = model.names.front();
  state.pci_bus_id = pci_bus_id_of(gpu);
  state.pci_device_id = model.pci_device_ids.front();
  state.memory_total_mib = model.memory_total_mib;
  state.memory_used_mib = used_memory_bytes(gpu) / (1024 * 1024);
  state.mig_current = mode_of(gpu, gpu.mig_current);
  state.mig_pending = mode_of(gpu, gpu.mig_pending);
  state.profiles = profiles_of(gpu);
  state.instances = gpu.instances;
  std::sort(state.instances.begin(), state.instances.end(),
            [](const auto& a, const auto& b) { return a.placement < b.placement; });
  for (const SimulatedClient& client : gpu.clients) {
    GpuProcess process;
    process.pid = client.pid;
    process.name = client.name;
    process.used_memory_bytes = client.used_memory_bytes;
    if (client.gpu_instance) {
      process.gpu_instance = GpuInstanceId(*client.gpu_instance);
    }
    if (client.compute_instance) {
      process.compute_instance = ComputeInstanceId(*client.compute_instance);
    }
    state.processes.push_back(std::move(process));
  }
  return state;
}

NvmlCode SimulatedDriver::call(const CallSite& site,
                               const std::function<NvmlCode(SimulatedGpu&)>& work) {
  if (killed_) {
    return NvmlCode::kUninitialized;
  }
  if (!site.gpu || *site.gpu >= node_.gpus.size()) {
    return NvmlCode::kInvalidArgument;
  }
  const CallVerdict verdict = begin_call(node_, site);
  now_ += verdict.delay;
  activation_ = verdict.activation;
  killed_ = verdict.kill == KillMoment::kBefore;
  if (killed_) {
    return NvmlCode::kUnknown;
  }
  NvmlCode code = NvmlCode::kSuccess;
  if (verdict.applies) {
    code = work(node_.gpus[*site.gpu]);
  } else if (verdict.code == NvmlCode::kSuccess) {
    SimulatedGpu without_effect = node_.gpus[*site.gpu];
    code = work(without_effect);  // a plausible answer, and nothing done
  }
  killed_ = verdict.kill == KillMoment::kAfter;
  return verdict.code.value_or(code);
}

Result<DriverInfo> SimulatedDriver::info() {
  DriverInfo info;
  info.driver_version = node_.config.driver_version;
  info.nvml_version = "12." + node_.config.driver_version;
  info.cuda_version = node_.config.cuda_version;
  info.library = "in process";
  info.simulated = true;
  return info;
}

Result<unsigned> SimulatedDriver::gpu_count() { return static_cast<unsigned>(node_.gpus.size()); }

Result<GpuState> SimulatedDriver::observe(unsigned index) {
  GpuState state;
  const NvmlCode code = call({"DeviceGetGpuInstances", index, {}}, [&](SimulatedGpu& gpu) {
    state = state_of(gpu);
    return NvmlCode::kSuccess;
  });
  if (code != NvmlCode::kSuccess) {
    return nvml_error(code, fmt::format("read GPU {}", index));
  }
  return state;
}

Result<std::vector<ComputeInstanceProfile>> SimulatedDriver::compute_profiles(
    unsigned index, GpuInstanceId instance) {
  std::vector<ComputeInstanceProfile> profiles;
  const CallSite site{"GpuInstanceGetComputeInstanceProfileInfo", index, instance.value()};
  const NvmlCode code = call(site, [&](SimulatedGpu& gpu) {
    const GpuInstance* found = find_instance(gpu, instance);
    if (found == nullptr) {
      return NvmlCode::kNotFound;
    }
    profiles = compute_profiles_of(gpu, *found);
    return NvmlCode::kSuccess;
  });
  if (code != NvmlCode::kSuccess) {
    return nvml_error(code, fmt::format("list compute profiles of GPU instance {} on GPU {}",
                                        instance.value(), index));
  }
  return profiles;
}

Result<unsigned> SimulatedDriver::remaining_capacity(unsigned index, ProfileId profile) {
  unsigned capacity = 0;
  const CallSite site{"DeviceGetGpuInstanceRemainingCapacity", index, {}};
  const NvmlCode code = call(site, [&](SimulatedGpu& gpu) {
    const auto remaining = gpu::remaining_capacity(gpu, profile);
    capacity = remaining.value_or(0);
    return remaining ? NvmlCode::kSuccess : NvmlCode::kInvalidArgument;
  });
  if (code != NvmlCode::kSuccess) {
    return nvml_error(
        code, fmt::format("ask GPU {} for the capacity of profile {}", index, profile.value()));
  }
  return capacity;
}

Result<Ok> SimulatedDriver::set_mig_mode(unsigned index, MigMode mode) {
  NvmlCode activation = NvmlCode::kSuccess;
  const NvmlCode code = call({"DeviceSetMigMode", index, {}}, [&](SimulatedGpu& gpu) {
    const ModeAnswer answer = gpu::set_mig_mode(gpu, mode, activation_);
    activation = answer.activation;
    return answer.code;
  });
  const std::string what =
      fmt::format("{} MIG on GPU {}", mode == MigMode::kEnabled ? "enable" : "disable", index);
  SEPTET_TRY(done_or(code, what));
  return done_or(activation, what + " now");
}

Result<GpuInstance> SimulatedDriver::create_gpu_instance(unsigned index, ProfileId profile,
                                                         Placement placement) {
  GpuInstance created;
  const CallSite site{"DeviceCreateGpuInstanceWithPlacement", index, {}};
  const NvmlCode code = call(site, [&](SimulatedGpu& gpu) {
    return gpu::create_gpu_instance(gpu, profile, placement, created);
  });
  if (code != NvmlCode::kSuccess) {
    return nvml_error(code, fmt::format("create a GPU instance of profile {} at {}:{} on GPU {}",
                                        profile.value(), placement.start, placement.size, index));
  }
  return created;
}

Result<Ok> SimulatedDriver::destroy_gpu_instance(unsigned index, GpuInstanceId instance) {
  const CallSite site{"GpuInstanceDestroy", index, instance.value()};
  const NvmlCode code =
      call(site, [&](SimulatedGpu& gpu) { return gpu::destroy_gpu_instance(gpu, instance); });
  return done_or(code, fmt::format("destroy GPU instance {} on GPU {}", instance.value(), index));
}

Result<ComputeInstance> SimulatedDriver::create_compute_instance(unsigned index,
                                                                 GpuInstanceId instance,
                                                                 ProfileId profile) {
  ComputeInstance created;
  const CallSite site{"GpuInstanceCreateComputeInstance", index, instance.value()};
  const NvmlCode code = call(site, [&](SimulatedGpu& gpu) {
    return gpu::create_compute_instance(gpu, instance, profile, std::nullopt, created);
  });
  if (code != NvmlCode::kSuccess) {
    return nvml_error(
        code, fmt::format("create a compute instance of profile {} in GPU instance {} on GPU {}",
                          profile.value(), instance.value(), index));
  }
  return created;
}

Result<Ok> SimulatedDriver::destroy_compute_instance(unsigned index, GpuInstanceId instance,
                                                     ComputeInstanceId compute_instance) {
  const CallSite site{"ComputeInstanceDestroy", index, instance.value()};
  const NvmlCode code = call(site, [&](SimulatedGpu& gpu) {
    return gpu::destroy_compute_instance(gpu, instance, compute_instance);
  });
  return done_or(code, fmt::format("destroy compute instance {} of GPU instance {} on GPU {}",
                                   compute_instance.value(), instance.value(), index));
}

}  // namespace septet::gpu
