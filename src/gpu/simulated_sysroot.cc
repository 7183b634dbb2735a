#include "gpu/simulated_sysroot.h"

#include <fmt/format.h>

#include "base/text.h"

namespace septet::gpu {
namespace {

constexpr unsigned kGpuInstances = 15;     // possible per GPU
constexpr unsigned kComputeInstances = 8;  // possible per GPU instance
constexpr unsigned kSubsystem = 0x146F10DE;

unsigned instance_minor(unsigned gpu, unsigned instance) {
  return 3 + kGpuInstances * (kComputeInstances + 1) * gpu + (kComputeInstances + 1) * instance;
}

std::string capability(unsigned minor) {
  constexpr int kOwnerMayRead = 0400;
  return fmt::format("DeviceFileMinor: {}\nDeviceFileMode: {}\nDeviceFileModify: 1\n", minor,
                     kOwnerMayRead);
}

std::string mig_minors(std::size_t gpus) {
  std::string text = "config 1\nmonitor 2\n";
  for (unsigned gpu = 0; gpu < gpus; ++gpu) {
    for (unsigned instance = 0; instance < kGpuInstances; ++instance) {
      const unsigned minor = instance_minor(gpu, instance);
      text += fmt::format("gpu{}/gi{}/access {}\n", gpu, instance, minor);
      for (unsigned compute = 0; compute < kComputeInstances; ++compute) {
        text +=
            fmt::format("gpu{}/gi{}/ci{}/access {}\n", gpu, instance, compute, minor + 1 + compute);
      }
    }
  }
  return text;
}

// The head of a PCI configuration space, little endian: vendor, device, ..., class, subsystem.
std::string pci_config(std::uint32_t device_id) {
  std::string bytes(256, '\0');
  const auto put16 = [&bytes](std::size_t at, unsigned value) {
    bytes[at] = static_cast<char>(value & 0xFF);
    bytes[at + 1] = static_cast<char>(value >> 8U & 0xFF);
  };
  put16(0x00, device_id & 0xFFFF);
  put16(0x02, device_id >> 16U);
  put16(0x04, 0x0406);  // command: memory and bus master
  put16(0x06, 0x0010);  // status: has capabilities
  put16(0x0A, 0x0302);  // class: 3D controller
  put16(0x2C, kSubsystem & 0xFFFF);
  put16(0x2E, kSubsystem >> 16U);
  return bytes;
}

void add_pci_device(std::vector<RenderedFile>& files, const SimulatedGpu& gpu) {
  const std::uint32_t id = model_of(gpu).pci_device_ids.front();
  const std::string bus_id = to_lower(pci_bus_id_of(gpu)).substr(4);
  const std::string folder = "sys/bus/pci/devices/" + bus_id + "/";
  const auto add = [&](const char* name, std::string content) {
    files.push_back({folder + name, std::move(content), false});
  };
  add("vendor", fmt::format("0x{:04x}\n", id & 0xFFFF));
  add("device", fmt::format("0x{:04x}\n", id >> 16U));
  add("subsystem_vendor", fmt::format("0x{:04x}\n", kSubsystem & 0xFFFF));
  add("subsystem_device", fmt::format("0x{:04x}\n", kSubsystem >> 16U));
  add("class", "0x030200\n");
  add("revision", "0xa1\n");
  add("irq", "0\n");
  add("numa_node", "-1\n");
  add("local_cpus", "ffffffff\n");
  add("reset", "");
  add("config", pci_config(id));
  std::string resource;
  for (int i = 0; i < 13; ++i) {
    resource += "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
  }
  add("resource", resource);
  files.push_back({folder + "driver", "../../drivers/nvidia", true});
  files.push_back({folder + "iommu_group",
                   fmt::format("../../../../kernel/iommu_groups/{}", gpu.config.index), true});
}

void add_gpu(std::vector<RenderedFile>& files, const SimulatedNode& node, const SimulatedGpu& gpu) {
  const std::string bus_id = to_lower(pci_bus_id_of(gpu)).substr(4);
  files.push_back({fmt::format("proc/driver/nvidia/gpus/{}/information", bus_id),
                   fmt::format("Model: \t\t {}\nIRQ:   \t\t 0\nGPU UUID: \t {}\n"
                               "Video BIOS: \t ??.??.??.??.??\nBus Type: \t PCIe\n"
                               "DMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\n"
                               "Bus Location: \t {}\nDevice Minor: \t {}\n"
                               "GPU Firmware: \t {}\nGPU Excluded:\t No\n",
                               model_of(gpu).names.front(), uuid_of(gpu), bus_id, gpu.minor,
                               node.config.driver_version),
                   false});
  const unsigned index = gpu.config.index;
  const std::string base = fmt::format("proc/driver/nvidia/capabilities/gpu{}/mig", gpu.minor);
  for (const GpuInstance& instance : gpu.instances) {
    const unsigned minor = instance_minor(index, instance.id.value());
    const std::string folder = fmt::format("{}/gi{}", base, instance.id.value());
    files.push_back({folder + "/access", capability(minor), false});
    for (const ComputeInstance& compute : instance.compute_instances) {
      files.push_back({fmt::format("{}/ci{}/access", folder, compute.id.value()),
                       capability(minor + 1 + compute.id.value()), false});
    }
  }
  add_pci_device(files, gpu);
}

}  // namespace

std::vector<RenderedFile> render_sysroot(const SimulatedNode& node) {
  std::vector<RenderedFile> files;
  files.push_back({"proc/modules", "nvidia 56717312 0 - Live 0x0000000000000000 (POE)\n", false});
  files.push_back({"proc/driver/nvidia/version",
                   fmt::format("NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  (simulated)\n",
                               node.config.driver_version),
                   false});
  files.push_back({"proc/driver/nvidia-caps/mig-minors", mig_minors(node.gpus.size()), false});
  files.push_back({"proc/driver/nvidia/capabilities/mig/config", capability(1), false});
  files.push_back({"proc/driver/nvidia/capabilities/mig/monitor", capability(2), false});
  files.push_back({"sys/bus/pci/drivers/nvidia/module", "../../../../module/nvidia", true});
  for (const SimulatedGpu& gpu : node.gpus) {
    add_gpu(files, node, gpu);
  }
  return files;
}

}  // namespace septet::gpu
