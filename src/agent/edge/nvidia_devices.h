// Which NVIDIA device nodes belong to which partition, for device rules of control groups.
//
//   /dev/nvidia<minor>                    a GPU          major 195
//   /dev/nvidiactl, /dev/nvidia-modeset   everybody      195:255, 195:254
//   /dev/nvidia-caps/nvidia-cap<minor>    the right to open a GPU instance, a compute instance
//
// The driver lists capability minors in /proc/driver/nvidia-caps/mig-minors (lines such as
// "gpu0/gi7/ci0/access 67") and majors in /proc/devices. Reading only.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/types.h"
#include "lend/types.h"
#include "os/device_rules.h"

namespace septet::agent {

// Where the driver keeps its files; another root in tests.
struct NvidiaDeviceFiles {
  std::string mig_minors = "/proc/driver/nvidia-caps/mig-minors";
  std::string devices = "/proc/devices";
  std::string gpus = "/proc/driver/nvidia/gpus";  // PCI address/information: "Device Minor: 0"
};

// Only the nodes of these partitions stay open to the group. kPrecondition when the driver's files
// are not there or a partition is not in them.
Result<std::vector<os::GuardedMajor>> nvidia_device_rules(
    const std::vector<gpu::GpuState>& gpus, const std::vector<lend::Partition>& partitions,
    const NvidiaDeviceFiles& files);

}  // namespace septet::agent
