// nvmlInit, nvmlShutdown, nvmlErrorString and what concerns the whole machine.
#include <fmt/format.h>

#include <string>

#include "base/text.h"
#include "library.h"

using namespace septet::simnvml;  // NOLINT: the C interface lives outside
using septet::gpu::SimulatedNode;

namespace {

int cuda_number(const std::string& version) {
  const auto parts = septet::split(version, '.');
  const auto major = septet::parse_int(parts[0]).value_or(0);
  const auto minor = parts.size() > 1 ? septet::parse_int(parts[1]).value_or(0) : 0;
  return static_cast<int>(major * 1000 + minor * 10);
}

abi::Return cuda_version(int* version) {
  return library().system_call("SystemGetCudaDriverVersion", [&](SimulatedNode& node) {
    if (version == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    *version = cuda_number(node.config.cuda_version);
    return NvmlCode::kSuccess;
  });
}

abi::Return init() {
  try {
    return static_cast<abi::Return>(library().init());
  } catch (...) {
    return static_cast<abi::Return>(NvmlCode::kUnknown);
  }
}

}  // namespace

SEPTET_NVML nvmlInit() { return init(); }
SEPTET_NVML nvmlInit_v2() { return init(); }
SEPTET_NVML nvmlInitWithFlags(unsigned /*flags*/) { return init(); }
SEPTET_NVML nvmlShutdown() { return static_cast<abi::Return>(library().shutdown()); }

extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(abi::Return code) {
  return septet::gpu::error_string(static_cast<NvmlCode>(code));
}

// How septet itself knows that this is the simulated library; no client of NVML asks.
extern "C" __attribute__((visibility("default"))) int septet_simnvml_version() { return 1; }

SEPTET_NVML nvmlSystemGetDriverVersion(char* version, unsigned size) {
  return library().system_call("SystemGetDriverVersion", [&](SimulatedNode& node) {
    return copy_text(node.config.driver_version, version, size);
  });
}

SEPTET_NVML nvmlSystemGetNVMLVersion(char* version, unsigned size) {
  return library().system_call("SystemGetNVMLVersion", [&](SimulatedNode& node) {
    const auto major = septet::split(node.config.cuda_version, '.')[0];
    return copy_text(fmt::format("{}.{}", major, node.config.driver_version), version, size);
  });
}

SEPTET_NVML nvmlSystemGetCudaDriverVersion(int* version) { return cuda_version(version); }
SEPTET_NVML nvmlSystemGetCudaDriverVersion_v2(int* version) { return cuda_version(version); }

SEPTET_NVML nvmlSystemGetProcessName(unsigned pid, char* name, unsigned size) {
  return library().system_call("SystemGetProcessName", [&](SimulatedNode& node) {
    for (const auto& gpu : node.gpus) {
      for (const auto& client : gpu.clients) {
        if (client.pid == static_cast<std::int64_t>(pid)) {
          return copy_text(client.name.substr(0, size > 0 ? size - 1 : 0), name, size);
        }
      }
    }
    return NvmlCode::kNotFound;
  });
}

SEPTET_NVML nvmlDeviceGetCount(unsigned* count) {
  return library().system_call("DeviceGetCount", [&](SimulatedNode& node) {
    if (count == nullptr) {
      return NvmlCode::kInvalidArgument;
    }
    *count = static_cast<unsigned>(node.gpus.size());
    return NvmlCode::kSuccess;
  });
}
SEPTET_NVML nvmlDeviceGetCount_v2(unsigned* count) { return nvmlDeviceGetCount(count); }

SEPTET_NVML nvmlUnitGetCount(unsigned* count) {
  if (count == nullptr) {
    return static_cast<abi::Return>(NvmlCode::kInvalidArgument);
  }
  *count = 0;
  return 0;
}
