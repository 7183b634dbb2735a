// HostFacts: what of this machine decides whether its GPUs can be used and changed. A value.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace septet::gpu {

struct HostFacts {
  bool is_root = false;
  bool nvidia_module = false;             // loaded, says /proc/modules
  bool nouveau_module = false;            // the free driver holds the GPUs instead
  std::string kernel_driver;              // the module's version; empty when it is not loaded
  std::optional<bool> may_open_gpu;       // /dev/nvidiactl; nothing when it is not there
  std::optional<bool> may_configure_mig;  // MIG's config capability; nothing when it is not there
  std::string no_slice_limits;  // why simulated slices would run unlimited; empty: they do not
};

}  // namespace septet::gpu
