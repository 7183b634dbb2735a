#include "gpu/edge/simulation_clients.h"

#include <fmt/format.h>

#include <functional>

#include "gpu/edge/open_driver.h"
#include "gpu/edge/simulation_store.h"

namespace septet::gpu {
namespace {

// `place` puts the client where it belongs and says which GPU that is; null where nothing fits.
using Place = std::function<SimulatedGpu*(SimulatedNode&, SimulatedClient&)>;

Result<Ok> hold(const std::string& simulate, const Client& client, const std::string& where,
                const Place& place) {
  const auto directory = ensure_simulation(simulate);
  if (!directory.ok()) {
    return directory.error();
  }
  SimulatedClient held;
  held.pid = client.pid;
  held.name = client.name;
  held.used_memory_bytes = client.used_memory_bytes;
  held.start_time = process_start_time(client.pid);
  const std::string what = fmt::format("let process {} hold {}", client.pid, where);
  if (held.start_time == 0) {
    return make_error(ErrorKind::kNotFound,
                      fmt::format("cannot {}: there is no such process", what));
  }
  NvmlCode code = NvmlCode::kNotFound;
  SEPTET_TRY(SimulationStore(*directory).update([&](SimulatedNode& node) {
    if (SimulatedGpu* gpu = place(node, held); gpu != nullptr) {
      code = attach_client(*gpu, held);
    }
  }));
  return code == NvmlCode::kSuccess ? Result<Ok>(Ok{}) : Result<Ok>(nvml_error(code, what));
}

}  // namespace

Result<Ok> hold_partition(const std::string& simulate, const MigUuid& device,
                          const Client& client) {
  return hold(simulate, client, device.value(),
              [&](SimulatedNode& node, SimulatedClient& held) -> SimulatedGpu* {
                for (SimulatedGpu& gpu : node.gpus) {
                  for (const MigDeviceRef& part : mig_devices(gpu)) {
                    if (part.uuid == device) {
                      held.gpu_instance = part.gpu_instance.value();
                      held.compute_instance = part.compute_instance.value();
                      return &gpu;
                    }
                  }
                }
                return nullptr;
              });
}

Result<Ok> hold_gpu(const std::string& simulate, const GpuUuid& uuid, const Client& client) {
  return hold(simulate, client, uuid.value(),
              [&](SimulatedNode& node, SimulatedClient& /*held*/) -> SimulatedGpu* {
                for (SimulatedGpu& gpu : node.gpus) {
                  if (uuid_of(gpu) == uuid.value()) {
                    return &gpu;
                  }
                }
                return nullptr;
              });
}

Result<Ok> release_partition(const std::string& simulate, std::int64_t pid) {
  const auto directory = ensure_simulation(simulate);
  if (!directory.ok()) {
    return directory.error();
  }
  return SimulationStore(*directory).update([&](SimulatedNode& node) {
    for (SimulatedGpu& gpu : node.gpus) {
      detach_client(gpu, pid);
    }
  });
}

}  // namespace septet::gpu
