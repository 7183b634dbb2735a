#include "agent/edge/nvidia_devices.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "base/text.h"
#include "os/durable_file.h"

namespace septet::agent {

namespace {

constexpr unsigned kGpuMajor = 195;
constexpr unsigned kControlMinor = 255;
constexpr unsigned kModesetMinor = 254;
constexpr unsigned kMostGpus = 32;

Error unusable(const std::string& path, const std::string& why) {
  return make_error(ErrorKind::kPrecondition,
                    fmt::format("cannot tell the device nodes of partitions: {}: {}", path, why));
}

// "gpu0/gi7/ci0/access" -> 67, and so on.
Result<std::map<std::string, unsigned>> read_minors(const std::string& path) {
  const Result<std::string> text = os::read_whole_file(path);
  if (!text.ok()) {
    return unusable(path, text.error().message);
  }
  std::map<std::string, unsigned> minors;
  for (const std::string_view line : split(*text, '\n')) {
    const auto words = split(trim(line), ' ');
    if (words.size() != 2) {
      continue;
    }
    if (const auto minor = parse_uint(words[1])) {
      minors.emplace(words[0], static_cast<unsigned>(*minor));
    }
  }
  return minors;
}

// The character major of a name in /proc/devices: "Character devices:" then "235 nvidia-caps".
std::optional<unsigned> find_major(const std::string& text, std::string_view name) {
  for (const std::string_view line : split(text, '\n')) {
    const auto words = split(trim(line), ' ');
    if (words.size() == 2 && words[1] == name) {
      if (const auto major = parse_uint(words[0])) {
        return static_cast<unsigned>(*major);
      }
    }
  }
  return std::nullopt;
}

const gpu::GpuState* find_gpu(const std::vector<gpu::GpuState>& gpus, const gpu::GpuUuid& uuid) {
  for (const gpu::GpuState& state : gpus) {
    if (state.uuid == uuid) {
      return &state;
    }
  }
  return nullptr;
}

// The minor of /dev/nvidia<minor>, which need not be the driver's index.
Result<unsigned> minor_of(const gpu::GpuState& state, const std::string& gpus_folder) {
  // NVML writes the PCI domain with eight digits, the kernel with four.
  const std::string& id = state.pci_bus_id;
  const std::string address = to_lower(id.size() > 12 ? id.substr(id.size() - 12) : id);
  const std::string path = fmt::format("{}/{}/information", gpus_folder, address);
  const Result<std::string> text = os::read_whole_file(path);
  if (!text.ok()) {
    return unusable(path, text.error().message);
  }
  constexpr std::string_view kField = "Device Minor:";
  for (const std::string_view line : split(*text, '\n')) {
    if (line.starts_with(kField)) {
      if (const auto minor = parse_uint(trim(line.substr(kField.size())))) {
        return static_cast<unsigned>(*minor);
      }
    }
  }
  return unusable(path, "no device minor in it");
}

// The capability names of a MIG device: of its GPU instance and of its compute instance.
std::vector<std::string> capabilities_of(const gpu::GpuState& state, unsigned gpu_minor,
                                         const lend::PartitionId& partition) {
  for (const gpu::GpuInstance& instance : state.instances) {
    for (const gpu::ComputeInstance& compute : instance.compute_instances) {
      if (compute.uuid.value() == partition.value()) {
        const std::string of_instance = fmt::format("gpu{}/gi{}", gpu_minor, instance.id.value());
        return {of_instance + "/access",
                fmt::format("{}/ci{}/access", of_instance, compute.id.value())};
      }
    }
  }
  return {};
}

}  // namespace

Result<std::vector<os::GuardedMajor>> nvidia_device_rules(
    const std::vector<gpu::GpuState>& gpus, const std::vector<lend::Partition>& partitions,
    const NvidiaDeviceFiles& files) {
  const Result<std::string> devices = os::read_whole_file(files.devices);
  if (!devices.ok()) {
    return unusable(files.devices, devices.error().message);
  }
  os::GuardedMajor nodes{kGpuMajor, {kControlMinor, kModesetMinor}, {}};
  for (unsigned minor = 0; minor < kMostGpus; ++minor) {
    nodes.known_minors.push_back(minor);
  }
  std::vector<std::string> wanted;
  for (const lend::Partition& partition : partitions) {
    const gpu::GpuState* state = find_gpu(gpus, partition.gpu);
    if (state == nullptr) {
      return unusable(partition.gpu.value(), "no such GPU");
    }
    const Result<unsigned> gpu_minor = minor_of(*state, files.gpus);
    SEPTET_TRY(gpu_minor);
    nodes.allowed_minors.push_back(*gpu_minor);
    if (partition.is_whole_gpu()) {
      continue;
    }
    const std::vector<std::string> names = capabilities_of(*state, *gpu_minor, partition.id);
    if (names.empty()) {
      return unusable(partition.id.value(), "no such MIG device");
    }
    wanted.insert(wanted.end(), names.begin(), names.end());
  }
  std::vector<os::GuardedMajor> rules = {std::move(nodes)};
  const std::optional<unsigned> major = find_major(*devices, "nvidia-caps");
  if (!major) {
    if (wanted.empty()) {
      return rules;
    }
    return unusable(files.devices, "no nvidia-caps in it");
  }
  const Result<std::map<std::string, unsigned>> minors = read_minors(files.mig_minors);
  SEPTET_TRY(minors);
  os::GuardedMajor capabilities{*major, {}, {}};
  for (const auto& [name, minor] : *minors) {
    capabilities.known_minors.push_back(minor);
  }
  for (const std::string& name : wanted) {
    const auto found = minors->find(name);
    if (found == minors->end()) {
      return unusable(files.mig_minors, fmt::format("no line '{}'", name));
    }
    capabilities.allowed_minors.push_back(found->second);
  }
  rules.push_back(std::move(capabilities));
  return rules;
}

}  // namespace septet::agent
