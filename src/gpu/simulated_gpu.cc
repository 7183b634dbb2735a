#include "gpu/simulated_gpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/prng.h"

namespace septet::gpu {
namespace {

constexpr std::int64_t kMebibyte = 1024 * 1024;

}  // namespace

std::string seeded_uuid(std::uint64_t seed, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  Prng mix(seed);
  std::uint64_t state = mix.next();
  for (const std::uint64_t part : {a, b, c}) {
    state = Prng(state ^ (part * 0x9E3779B97F4A7C15ULL)).next();
  }
  Prng prng(state);
  const std::uint64_t high = (prng.next() & ~0xF000ULL) | 0x4000ULL;
  const std::uint64_t low = (prng.next() >> 2) | (1ULL << 63);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xFFFF,
                     high & 0xFFFF, low >> 48, low & 0xFFFFFFFFFFFFULL);
}

SimulatedGpu make_simulated_gpu(const SimulatedGpuConfig& config) {
  SimulatedGpu gpu;
  gpu.config = config;
  gpu.minor = config.index;
  CHECK(find_gpu_model(config.model).ok());
  return gpu;
}

const GpuModel& model_of(const SimulatedGpu& gpu) {
  const auto model = find_gpu_model(gpu.config.model);
  CHECK(model.ok());
  return **model;
}

std::vector<GpuInstanceProfile> profiles_of(const SimulatedGpu& gpu) {
  std::vector<GpuInstanceProfile> profiles = model_of(gpu).profiles;
  for (GpuInstanceProfile& profile : profiles) {
    for (const ProfileOverride& change : gpu.config.overrides) {
      if (ProfileId(change.profile_id) != profile.id) {
        continue;
      }
      profile.id = ProfileId(change.reported_id.value_or(change.profile_id));
      profile.name = change.name.value_or(profile.name);
      profile.memory_mib = change.memory_mib.value_or(profile.memory_mib);
      profile.max_instances = change.reported_max_instances.value_or(profile.max_instances);
      break;
    }
  }
  return profiles;
}

std::string uuid_of(const SimulatedGpu& gpu) {
  return "GPU-" + seeded_uuid(gpu.config.seed, gpu.config.index, 0, 0);
}

// The buses of an eight-GPU board, then on from there.
unsigned pci_bus_of(const SimulatedGpu& gpu) {
  constexpr unsigned kBuses[] = {0x07, 0x0F, 0x47, 0x4E, 0x87, 0x90, 0xB7, 0xBD};
  const unsigned index = gpu.config.index;
  return index < std::size(kBuses) ? kBuses[index] : 0xC0 + index - 8;
}

std::string pci_bus_id_of(const SimulatedGpu& gpu) {
  return fmt::format("00000000:{:02X}:00.0", pci_bus_of(gpu));
}

std::int64_t used_memory_bytes(const SimulatedGpu& gpu) {
  std::int64_t bytes = 0;
  for (const SimulatedClient& client : gpu.clients) {
    bytes += client.used_memory_bytes;
  }
  return std::min(bytes, model_of(gpu).memory_total_mib * kMebibyte);
}

std::int64_t used_memory_bytes(const SimulatedGpu& gpu, GpuInstanceId instance) {
  std::int64_t bytes = 0;
  for (const SimulatedClient& client : gpu.clients) {
    bytes += client.gpu_instance == instance.value() ? client.used_memory_bytes : 0;
  }
  return bytes;
}

const GpuInstance* find_instance(const SimulatedGpu& gpu, GpuInstanceId id) {
  const auto found = std::find_if(gpu.instances.begin(), gpu.instances.end(),
                                  [&](const GpuInstance& instance) { return instance.id == id; });
  return found == gpu.instances.end() ? nullptr : &*found;
}

std::vector<MigDeviceRef> mig_devices(const SimulatedGpu& gpu) {
  std::vector<MigDeviceRef> devices;
  for (const GpuInstance& instance : gpu.instances) {
    for (const ComputeInstance& compute : instance.compute_instances) {
      devices.push_back({instance.id, compute.id, compute.uuid});
    }
  }
  return devices;
}

ModeAnswer set_mig_mode(SimulatedGpu& gpu, MigMode mode,
                        std::optional<NvmlCode> forced_activation) {
  if (gpu.lost) {
    return {NvmlCode::kGpuIsLost, NvmlCode::kGpuIsLost};
  }
  const MigModeRules& rules = model_of(gpu).mig;
  if (!rules.supported || mode == MigMode::kUnsupported) {
    return {NvmlCode::kNotSupported, NvmlCode::kNotSupported};
  }
  const bool enable = mode == MigMode::kEnabled;
  gpu.mig_pending = enable;
  if (gpu.mig_current == enable) {
    return {};
  }
  if (forced_activation && *forced_activation != NvmlCode::kSuccess) {
    return {NvmlCode::kSuccess, *forced_activation};
  }
  if (!gpu.clients.empty() || !gpu.instances.empty()) {
    return {NvmlCode::kSuccess, NvmlCode::kInUse};
  }
  if (rules.enable_needs_gpu_reset && gpu.config.virtual_machine) {
    return {NvmlCode::kSuccess, NvmlCode::kResetRequired};
  }
  gpu.mig_current = enable;
  if (gpu.config.renumbers_on_mode) {
    gpu.minor = gpu.config.index + (enable ? 64 : 0);
  }
  return {};
}

NvmlCode attach_client(SimulatedGpu& gpu, const SimulatedClient& client) {
  if (gpu.lost) {
    return NvmlCode::kGpuIsLost;
  }
  if (client.gpu_instance) {
    const GpuInstance* instance = find_instance(gpu, GpuInstanceId(*client.gpu_instance));
    if (instance == nullptr) {
      return NvmlCode::kNotFound;
    }
    const auto& existing = instance->compute_instances;
    if (client.compute_instance &&
        std::none_of(existing.begin(), existing.end(), [&](const ComputeInstance& c) {
          return c.id.value() == *client.compute_instance;
        })) {
      return NvmlCode::kNotFound;
    }
  } else if (client.compute_instance) {
    return NvmlCode::kInvalidArgument;
  }
  gpu.clients.push_back(client);
  return NvmlCode::kSuccess;
}

void detach_client(SimulatedGpu& gpu, std::int64_t pid) {
  std::erase_if(gpu.clients, [&](const SimulatedClient& client) { return client.pid == pid; });
}

void reboot(SimulatedGpu& gpu) {
  gpu.instances.clear();
  gpu.clients.clear();
  gpu.lost = false;
  gpu.mig_current = model_of(gpu).mig.mode_survives_reboot && gpu.mig_pending;
  gpu.mig_pending = gpu.mig_current;
}

}  // namespace septet::gpu
