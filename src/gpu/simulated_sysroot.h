// The files under /proc and /sys that clients of a GPU read, as a simulated node would have them.
//
//   proc/modules                                       a line for nvidia
//   proc/driver/nvidia/{version,gpus/BUS/information}
//   proc/driver/nvidia/capabilities/...                a file per MIG capability: minor, mode,
//   modify proc/driver/nvidia-caps/mig-minors                 every possible capability with its
//   minor sys/bus/pci/devices/BUS/...                        what hwloc and libpciaccess read of a
//   PCI device
//
// Pure: the store writes them into a directory. Layout as nv-caps.c of the open kernel driver: the
// minor of a GPU instance is 3 + 135 * GPU + 9 * GI, that of a compute instance 1 + CI more.
#pragma once

#include <string>
#include <vector>

#include "gpu/simulated_node.h"

namespace septet::gpu {

struct RenderedFile {
  std::string path;     // relative to the root
  std::string content;  // bytes; for a link, where it points
  bool is_link = false;
};

std::vector<RenderedFile> render_sysroot(const SimulatedNode& node);

}  // namespace septet::gpu
