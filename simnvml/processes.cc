#include "processes.h"

namespace septet::simnvml {

std::vector<gpu::SimulatedClient> clients_of(const CallContext& call, gpu::ClientKind kind) {
  std::vector<gpu::SimulatedClient> shown;
  for (const gpu::SimulatedClient& client : call.gpu.clients) {
    // An MPS client computes as well.
    const bool is_of_kind = client.kind == kind || (client.kind == gpu::ClientKind::kMps &&
                                                    kind == gpu::ClientKind::kCompute);
    const bool is_here = call.handle.kind != HandleKind::kMigDevice ||
                         (client.gpu_instance == call.handle.gpu_instance &&
                          client.compute_instance.value_or(call.handle.compute_instance) ==
                              call.handle.compute_instance);
    if (is_of_kind && is_here) {
      shown.push_back(client);
    }
  }
  return shown;
}

}  // namespace septet::simnvml

using namespace septet::simnvml;  // NOLINT: the C interface lives outside
using septet::gpu::ClientKind;
using septet::gpu::SimulatedClient;

namespace {

template <typename T, typename F>
abi::Return list(std::string_view function, abi::Device device, ClientKind kind, unsigned* count,
                 T* out, F convert) {
  return library().call(function, Access::kRead, device, [&](CallContext& call) {
    const auto clients = clients_of(call, kind);
    if (count != nullptr && *count == 0 && !clients.empty()) {
      *count = static_cast<unsigned>(clients.size());
      return NvmlCode::kInsufficientSize;  // as documented for this list: 0 asks for the count
    }
    return copy_list(clients, out, count, convert);
  });
}

abi::Return list_v1(std::string_view function, abi::Device device, ClientKind kind, unsigned* count,
                    abi::ProcessInfoV1* out) {
  return list(function, device, kind, count, out, [](const SimulatedClient& client) {
    return abi::ProcessInfoV1{static_cast<std::uint32_t>(client.pid),
                              static_cast<std::uint64_t>(client.used_memory_bytes)};
  });
}

abi::Return list_v2(std::string_view function, abi::Device device, ClientKind kind, unsigned* count,
                    abi::ProcessInfo* out) {
  return list(function, device, kind, count, out, [](const SimulatedClient& client) {
    return abi::ProcessInfo{static_cast<std::uint32_t>(client.pid),
                            static_cast<std::uint64_t>(client.used_memory_bytes),
                            client.gpu_instance.value_or(abi::kNoInstance),
                            client.compute_instance.value_or(abi::kNoInstance)};
  });
}

}  // namespace

SEPTET_NVML nvmlDeviceGetComputeRunningProcesses(abi::Device device, unsigned* count,
                                                 abi::ProcessInfoV1* out) {
  return list_v1("DeviceGetComputeRunningProcesses", device, ClientKind::kCompute, count, out);
}
SEPTET_NVML nvmlDeviceGetComputeRunningProcesses_v2(abi::Device device, unsigned* count,
                                                    abi::ProcessInfo* out) {
  return list_v2("DeviceGetComputeRunningProcesses", device, ClientKind::kCompute, count, out);
}
SEPTET_NVML nvmlDeviceGetComputeRunningProcesses_v3(abi::Device device, unsigned* count,
                                                    abi::ProcessInfo* out) {
  return list_v2("DeviceGetComputeRunningProcesses", device, ClientKind::kCompute, count, out);
}
SEPTET_NVML nvmlDeviceGetGraphicsRunningProcesses(abi::Device device, unsigned* count,
                                                  abi::ProcessInfoV1* out) {
  return list_v1("DeviceGetGraphicsRunningProcesses", device, ClientKind::kGraphics, count, out);
}
SEPTET_NVML nvmlDeviceGetGraphicsRunningProcesses_v2(abi::Device device, unsigned* count,
                                                     abi::ProcessInfo* out) {
  return list_v2("DeviceGetGraphicsRunningProcesses", device, ClientKind::kGraphics, count, out);
}
SEPTET_NVML nvmlDeviceGetGraphicsRunningProcesses_v3(abi::Device device, unsigned* count,
                                                     abi::ProcessInfo* out) {
  return list_v2("DeviceGetGraphicsRunningProcesses", device, ClientKind::kGraphics, count, out);
}
SEPTET_NVML nvmlDeviceGetMPSComputeRunningProcesses(abi::Device device, unsigned* count,
                                                    abi::ProcessInfoV1* out) {
  return list_v1("DeviceGetMPSComputeRunningProcesses", device, ClientKind::kMps, count, out);
}
SEPTET_NVML nvmlDeviceGetMPSComputeRunningProcesses_v2(abi::Device device, unsigned* count,
                                                       abi::ProcessInfo* out) {
  return list_v2("DeviceGetMPSComputeRunningProcesses", device, ClientKind::kMps, count, out);
}
SEPTET_NVML nvmlDeviceGetMPSComputeRunningProcesses_v3(abi::Device device, unsigned* count,
                                                       abi::ProcessInfo* out) {
  return list_v2("DeviceGetMPSComputeRunningProcesses", device, ClientKind::kMps, count, out);
}
