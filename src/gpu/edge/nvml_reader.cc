#include "gpu/edge/nvml_reader.h"

#include <algorithm>
#include <array>

#include "gpu/profile_name.h"

namespace septet::gpu {
namespace {

constexpr unsigned kMaxInstances = 64;  // far beyond any chip's profile
constexpr std::int64_t kMebibyte = 1024 * 1024;

NvmlCode code_of(abi::Return code) { return static_cast<NvmlCode>(code); }

// "MIG 1g.5gb" -> "1g.5gb".
std::string without_mig(const char* name) {
  const std::string text(name);
  return text.starts_with("MIG ") ? text.substr(4) : text;
}

template <typename T>
EngineCounts engines_of(const T& info) {
  EngineCounts engines;
  engines.multiprocessors = info.multiprocessor_count;
  engines.copy_engines = info.copy_engine_count;
  engines.decoders = info.decoder_count;
  engines.encoders = info.encoder_count;
  engines.jpeg = info.jpeg_count;
  engines.ofa = info.ofa_count;
  return engines;
}

template <typename T>
void fill(GpuInstanceProfile& profile, const T& info) {
  profile.id = ProfileId(info.id);
  profile.slices = info.slice_count;
  profile.max_instances = info.instance_count;
  profile.memory_mib = static_cast<std::int64_t>(info.memory_size_mib);
  profile.engines = engines_of(info);
}

}  // namespace

NvmlCode NvmlReader::read(GpuState& state) const {
  NvmlCode code = read_identity(state);
  if (code == NvmlCode::kSuccess && state.mig_current != MigMode::kUnsupported) {
    code = read_profiles(state);
  }
  if (code == NvmlCode::kSuccess && state.mig_current == MigMode::kEnabled) {
    code = read_instances(state);
  }
  return code == NvmlCode::kSuccess ? read_processes(state) : code;
}

NvmlCode NvmlReader::read_identity(GpuState& state) const {
  std::array<char, abi::kUuidSize> uuid{};
  std::array<char, abi::kNameSize> name{};
  abi::PciInfo pci{};
  abi::Memory memory{};
  for (const abi::Return code : {nvml_.nvmlDeviceGetUUID(device_, uuid.data(), uuid.size()),
                                 nvml_.nvmlDeviceGetName(device_, name.data(), name.size()),
                                 nvml_.nvmlDeviceGetPciInfo_v3(device_, &pci),
                                 nvml_.nvmlDeviceGetMemoryInfo(device_, &memory)}) {
    if (code != 0) {
      return code_of(code);
    }
  }
  state.uuid = GpuUuid(uuid.data());
  state.name = name.data();
  state.pci_bus_id = pci.bus_id;
  state.pci_device_id = pci.pci_device_id;
  state.memory_total_mib = static_cast<std::int64_t>(memory.total) / kMebibyte;
  state.memory_used_mib = static_cast<std::int64_t>(memory.used) / kMebibyte;
  if (nvml_.nvmlDeviceGetMigMode == nullptr) {
    return NvmlCode::kSuccess;
  }
  unsigned current = 0;
  unsigned pending = 0;
  const NvmlCode code = code_of(nvml_.nvmlDeviceGetMigMode(device_, &current, &pending));
  if (code == NvmlCode::kNotSupported) {
    return NvmlCode::kSuccess;
  }
  state.mig_current = current == 1 ? MigMode::kEnabled : MigMode::kDisabled;
  state.mig_pending = pending == 1 ? MigMode::kEnabled : MigMode::kDisabled;
  return code;
}

// Profiles that a driver does not tell with MIG off stay unknown: an empty list.
NvmlCode NvmlReader::read_profiles(GpuState& state) const {
  for (unsigned nvml_enum = 0; nvml_enum < abi::kGpuInstanceProfileCount; ++nvml_enum) {
    GpuInstanceProfile profile;
    const NvmlCode code = read_profile(nvml_enum, state.memory_total_mib, profile);
    if (code == NvmlCode::kSuccess) {
      state.profiles.push_back(std::move(profile));
    } else if (code != NvmlCode::kNotSupported && code != NvmlCode::kInvalidArgument) {
      return code;
    }
  }
  // As nvidia-smi lists them: by slices, variants of a size by memory, then by enum.
  std::stable_sort(state.profiles.begin(), state.profiles.end(), [](const auto& a, const auto& b) {
    return a.slices != b.slices ? a.slices < b.slices : a.memory_mib < b.memory_mib;
  });
  return NvmlCode::kSuccess;
}

NvmlCode NvmlReader::read_profile(unsigned nvml_enum, std::int64_t total_mib,
                                  GpuInstanceProfile& profile) const {
  NvmlCode code = NvmlCode::kNotSupported;
  if (nvml_.nvmlDeviceGetGpuInstanceProfileInfoV != nullptr) {
    abi::GpuInstanceProfileInfoV2 info{};
    info.version = abi::version_of(2, sizeof info);
    code = code_of(nvml_.nvmlDeviceGetGpuInstanceProfileInfoV(device_, nvml_enum, &info));
    fill(profile, info);
    profile.name = without_mig(info.name);
  } else if (nvml_.nvmlDeviceGetGpuInstanceProfileInfo != nullptr) {
    abi::GpuInstanceProfileInfo info{};
    code = code_of(nvml_.nvmlDeviceGetGpuInstanceProfileInfo(device_, nvml_enum, &info));
    fill(profile, info);
  }
  if (code != NvmlCode::kSuccess) {
    return code;
  }
  profile.nvml_enum = nvml_enum;
  if (profile.name.empty()) {
    profile.name = derived_profile_name(profile, total_mib);
  }
  return read_placements(profile);
}

NvmlCode NvmlReader::read_placements(GpuInstanceProfile& profile) const {
  if (nvml_.nvmlDeviceGetGpuInstancePossiblePlacements_v2 == nullptr) {
    return NvmlCode::kFunctionNotFound;
  }
  std::array<abi::Placement, kMaxInstances> spans{};
  unsigned count = kMaxInstances;
  const NvmlCode code = code_of(nvml_.nvmlDeviceGetGpuInstancePossiblePlacements_v2(
      device_, profile.id.value(), spans.data(), &count));
  if (code == NvmlCode::kSuccess) {
    for (unsigned i = 0; i < count; ++i) {
      profile.placements.push_back({spans[i].start, spans[i].size});
    }
    std::sort(profile.placements.begin(), profile.placements.end());
  }
  return code;
}

NvmlCode NvmlReader::read_instances(GpuState& state) const {
  for (const GpuInstanceProfile& profile : state.profiles) {
    std::array<abi::GpuInstance, kMaxInstances> handles{};
    unsigned count = kMaxInstances;
    const NvmlCode code = code_of(
        nvml_.nvmlDeviceGetGpuInstances(device_, profile.id.value(), handles.data(), &count));
    if (code != NvmlCode::kSuccess) {
      return code;
    }
    for (unsigned i = 0; i < count; ++i) {
      GpuInstance instance;
      if (const NvmlCode read = read_instance(handles[i], instance); read != NvmlCode::kSuccess) {
        return read;
      }
      state.instances.push_back(std::move(instance));
    }
  }
  const auto devices = mig_devices();
  for (GpuInstance& instance : state.instances) {
    for (ComputeInstance& compute : instance.compute_instances) {
      for (const MigDevice& device : devices) {
        if (device.gpu_instance == instance.id.value() &&
            device.compute_instance == compute.id.value()) {
          compute.uuid = MigUuid(device.uuid);
        }
      }
    }
  }
  std::sort(state.instances.begin(), state.instances.end(),
            [](const auto& a, const auto& b) { return a.placement < b.placement; });
  return NvmlCode::kSuccess;
}

NvmlCode NvmlReader::read_instance(abi::GpuInstance handle, GpuInstance& instance) const {
  abi::GpuInstanceInfo info{};
  NvmlCode code = code_of(nvml_.nvmlGpuInstanceGetInfo(handle, &info));
  if (code != NvmlCode::kSuccess) {
    return code;
  }
  instance.id = GpuInstanceId(info.id);
  instance.profile_id = ProfileId(info.profile_id);
  instance.placement = {info.placement.start, info.placement.size};
  std::vector<ComputeInstanceProfile> profiles;
  code = read_compute_profiles(handle, profiles);
  for (const ComputeInstanceProfile& profile : profiles) {
    std::array<abi::ComputeInstance, kMaxInstances> handles{};
    unsigned count = kMaxInstances;
    if (code == NvmlCode::kSuccess) {
      code = code_of(nvml_.nvmlGpuInstanceGetComputeInstances(handle, profile.id.value(),
                                                              handles.data(), &count));
    }
    for (unsigned i = 0; code == NvmlCode::kSuccess && i < count; ++i) {
      abi::ComputeInstanceInfo compute{};
      code = code_of(nvml_.nvmlComputeInstanceGetInfo_v2(handles[i], &compute));
      instance.compute_instances.push_back({ComputeInstanceId(compute.id),
                                            ProfileId(compute.profile_id),
                                            {compute.placement.start, compute.placement.size},
                                            MigUuid()});
    }
  }
  std::sort(instance.compute_instances.begin(), instance.compute_instances.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return code;
}

NvmlCode NvmlReader::read_compute_profiles(abi::GpuInstance handle,
                                           std::vector<ComputeInstanceProfile>& profiles) const {
  for (unsigned nvml_enum = 0; nvml_enum < abi::kComputeInstanceProfileCount; ++nvml_enum) {
    abi::ComputeInstanceProfileInfoV2 info{};
    info.version = abi::version_of(2, sizeof info);
    const NvmlCode code = nvml_.nvmlGpuInstanceGetComputeInstanceProfileInfoV != nullptr
                              ? code_of(nvml_.nvmlGpuInstanceGetComputeInstanceProfileInfoV(
                                    handle, nvml_enum, 0, &info))
                              : code_of(nvml_.nvmlGpuInstanceGetComputeInstanceProfileInfo(
                                    handle, nvml_enum, 0, &info.v1));
    if (code == NvmlCode::kNotSupported || code == NvmlCode::kInvalidArgument) {
      continue;
    }
    if (code != NvmlCode::kSuccess) {
      return code;
    }
    ComputeInstanceProfile profile;
    profile.nvml_enum = nvml_enum;
    profile.id = ProfileId(info.v1.id);
    profile.name = without_mig(info.name);
    profile.slices = info.v1.slice_count;
    profile.max_instances = info.v1.instance_count;
    profile.engines = engines_of(info.v1);
    profiles.push_back(std::move(profile));
  }
  return NvmlCode::kSuccess;
}

NvmlCode NvmlReader::read_compute_instance(abi::ComputeInstance handle, ComputeInstance& instance,
                                           GpuInstanceId of) const {
  abi::ComputeInstanceInfo info{};
  const NvmlCode code = code_of(nvml_.nvmlComputeInstanceGetInfo_v2(handle, &info));
  if (code != NvmlCode::kSuccess) {
    return code;
  }
  instance.id = ComputeInstanceId(info.id);
  instance.profile_id = ProfileId(info.profile_id);
  instance.placement = {info.placement.start, info.placement.size};
  for (const MigDevice& device : mig_devices()) {
    if (device.gpu_instance == of.value() && device.compute_instance == info.id) {
      instance.uuid = MigUuid(device.uuid);
    }
  }
  return NvmlCode::kSuccess;
}

// Those that can be read now; the index of a MIG device moves, so gaps are passed over.
std::vector<NvmlReader::MigDevice> NvmlReader::mig_devices() const {
  std::vector<MigDevice> devices;
  unsigned count = 0;
  if (nvml_.nvmlDeviceGetMaxMigDeviceCount(device_, &count) != 0) {
    return devices;
  }
  for (unsigned index = 0; index < count; ++index) {
    abi::Device handle = nullptr;
    MigDevice device;
    std::array<char, abi::kUuidSize> uuid{};
    if (nvml_.nvmlDeviceGetMigDeviceHandleByIndex(device_, index, &handle) == 0 &&
        nvml_.nvmlDeviceGetGpuInstanceId(handle, &device.gpu_instance) == 0 &&
        nvml_.nvmlDeviceGetComputeInstanceId(handle, &device.compute_instance) == 0 &&
        nvml_.nvmlDeviceGetUUID(handle, uuid.data(), uuid.size()) == 0) {
      device.uuid = uuid.data();
      devices.push_back(std::move(device));
    }
  }
  return devices;
}

NvmlCode NvmlReader::read_processes(GpuState& state) const {
  using List = abi::Return (*)(abi::Device, unsigned*, abi::ProcessInfo*);
  const auto newest = [](List v3, List v2) { return v3 != nullptr ? v3 : v2; };
  for (const List list : {newest(nvml_.nvmlDeviceGetComputeRunningProcesses_v3,
                                 nvml_.nvmlDeviceGetComputeRunningProcesses_v2),
                          newest(nvml_.nvmlDeviceGetGraphicsRunningProcesses_v3,
                                 nvml_.nvmlDeviceGetGraphicsRunningProcesses_v2)}) {
    std::vector<abi::ProcessInfo> processes(256);
    auto count = static_cast<unsigned>(processes.size());
    const NvmlCode code = list == nullptr ? NvmlCode::kNotSupported
                                          : code_of(list(device_, &count, processes.data()));
    if (code == NvmlCode::kNotSupported) {
      continue;
    }
    if (code != NvmlCode::kSuccess) {
      return code;
    }
    for (unsigned i = 0; i < count; ++i) {
      GpuProcess process;
      process.pid = processes[i].pid;
      process.used_memory_bytes = static_cast<std::int64_t>(processes[i].used_gpu_memory);
      if (processes[i].gpu_instance_id != abi::kNoInstance) {
        process.gpu_instance = GpuInstanceId(processes[i].gpu_instance_id);
      }
      if (processes[i].compute_instance_id != abi::kNoInstance) {
        process.compute_instance = ComputeInstanceId(processes[i].compute_instance_id);
      }
      std::array<char, 4096> name{};
      if (nvml_.nvmlSystemGetProcessName != nullptr &&
          nvml_.nvmlSystemGetProcessName(processes[i].pid, name.data(), name.size()) == 0) {
        process.name = name.data();
      }
      state.processes.push_back(std::move(process));
    }
  }
  return NvmlCode::kSuccess;
}

}  // namespace septet::gpu
