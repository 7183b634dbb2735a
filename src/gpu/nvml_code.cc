#include "gpu/nvml_code.h"

#include <fmt/format.h>

#include "base/text.h"

namespace septet::gpu {
namespace {

struct CodeRow {
  NvmlCode code;
  std::string_view name;
  const char* text;
};

constexpr CodeRow kCodes[] = {
    {NvmlCode::kSuccess, "success", "Success"},
    {NvmlCode::kUninitialized, "uninitialized", "Uninitialized"},
    {NvmlCode::kInvalidArgument, "invalid_argument", "Invalid Argument"},
    {NvmlCode::kNotSupported, "not_supported", "Not Supported"},
    {NvmlCode::kNoPermission, "no_permission", "Insufficient Permissions"},
    {NvmlCode::kAlreadyInitialized, "already_initialized", "Already Initialized"},
    {NvmlCode::kNotFound, "not_found", "Not Found"},
    {NvmlCode::kInsufficientSize, "insufficient_size", "Insufficient Size"},
    {NvmlCode::kInsufficientPower, "insufficient_power", "Insufficient External Power"},
    {NvmlCode::kDriverNotLoaded, "driver_not_loaded", "Driver Not Loaded"},
    {NvmlCode::kTimeout, "timeout", "Timeout"},
    {NvmlCode::kIrqIssue, "irq_issue", "Interrupt Request Issue"},
    {NvmlCode::kLibraryNotFound, "library_not_found", "NVML Shared Library Not Found"},
    {NvmlCode::kFunctionNotFound, "function_not_found", "Function Not Found"},
    {NvmlCode::kCorruptedInforom, "corrupted_inforom", "Corrupted infoROM"},
    {NvmlCode::kGpuIsLost, "gpu_is_lost", "GPU is lost"},
    {NvmlCode::kResetRequired, "reset_required", "GPU requires reset"},
    {NvmlCode::kOperatingSystem, "operating_system", "GPU access blocked by the operating system"},
    {NvmlCode::kLibRmVersionMismatch, "version_mismatch", "Driver/library version mismatch"},
    {NvmlCode::kInUse, "in_use", "In use by another client"},
    {NvmlCode::kMemory, "memory", "Insufficient Memory"},
    {NvmlCode::kNoData, "no_data", "No data"},
    {NvmlCode::kVgpuEccNotSupported, "vgpu_ecc_not_supported", "vGPU ECC not supported"},
    {NvmlCode::kInsufficientResources, "insufficient_resources", "Insufficient Resources"},
    {NvmlCode::kFreqNotSupported, "freq_not_supported", "Invalid Frequency"},
    {NvmlCode::kArgumentVersionMismatch, "argument_version_mismatch", "Argument version mismatch"},
    {NvmlCode::kDeprecated, "deprecated", "Requested functionality has been deprecated"},
    {NvmlCode::kNotReady, "not_ready", "System is not in ready state"},
    {NvmlCode::kGpuNotFound, "gpu_not_found", "GPU not found"},
    {NvmlCode::kInvalidState, "invalid_state", "Invalid state"},
};
constexpr CodeRow kUnknownRow = {NvmlCode::kUnknown, "unknown", "Unknown Error"};

const CodeRow& row_of(NvmlCode code) {
  for (const CodeRow& row : kCodes) {
    if (row.code == code) {
      return row;
    }
  }
  return kUnknownRow;
}

ErrorKind kind_of(NvmlCode code) {
  switch (code) {
    case NvmlCode::kInvalidArgument:
    case NvmlCode::kArgumentVersionMismatch:
      return ErrorKind::kUsage;
    case NvmlCode::kUninitialized:
    case NvmlCode::kAlreadyInitialized:
    case NvmlCode::kNotSupported:
    case NvmlCode::kDriverNotLoaded:
    case NvmlCode::kLibraryNotFound:
    case NvmlCode::kFunctionNotFound:
    case NvmlCode::kLibRmVersionMismatch:
    case NvmlCode::kInUse:
    case NvmlCode::kNotReady:
    case NvmlCode::kInvalidState:
      return ErrorKind::kPrecondition;
    case NvmlCode::kNoPermission:
    case NvmlCode::kOperatingSystem:
      return ErrorKind::kPermission;
    case NvmlCode::kNotFound:
    case NvmlCode::kGpuNotFound:
      return ErrorKind::kNotFound;
    case NvmlCode::kResetRequired:
      return ErrorKind::kResetNeeded;
    case NvmlCode::kInsufficientResources:
    case NvmlCode::kMemory:
      return ErrorKind::kNoCapacity;
    case NvmlCode::kSuccess:
    case NvmlCode::kInsufficientSize:
    case NvmlCode::kInsufficientPower:
    case NvmlCode::kTimeout:
    case NvmlCode::kIrqIssue:
    case NvmlCode::kCorruptedInforom:
    case NvmlCode::kGpuIsLost:
    case NvmlCode::kNoData:
    case NvmlCode::kVgpuEccNotSupported:
    case NvmlCode::kFreqNotSupported:
    case NvmlCode::kDeprecated:
    case NvmlCode::kUnknown:
      return ErrorKind::kFailed;
  }
  return ErrorKind::kFailed;
}

const char* hint_for(NvmlCode code) {
  if (code == NvmlCode::kDriverNotLoaded || code == NvmlCode::kLibraryNotFound) {
    return "install or load the NVIDIA driver, or try septet --simulate A100-SXM4-40GB";
  }
  if (code == NvmlCode::kNoPermission) {
    return "run as root, or with access to the MIG capability /dev/nvidia-caps";
  }
  if (code == NvmlCode::kInUse) {
    return "find who holds it with septet status, end that process, and try again";
  }
  if (code == NvmlCode::kResetRequired) {
    return "reset the GPU (nvidia-smi --gpu-reset) or reboot";
  }
  if (code == NvmlCode::kGpuIsLost) {
    return "the GPU fell off the bus: look at the kernel log for Xid messages, then reboot";
  }
  if (code == NvmlCode::kLibRmVersionMismatch) {
    return "library and kernel module differ after an update: reload the module or reboot";
  }
  return "";
}

}  // namespace

const char* error_string(NvmlCode code) { return row_of(code).text; }

std::string_view code_name(NvmlCode code) { return row_of(code).name; }

std::optional<NvmlCode> parse_nvml_code(std::string_view text) {
  const auto number = parse_uint(text);
  for (const CodeRow& row : kCodes) {
    if (row.name == text || (number && *number == static_cast<unsigned>(row.code))) {
      return row.code;
    }
  }
  if (text == kUnknownRow.name || number == 999U) {
    return NvmlCode::kUnknown;
  }
  return std::nullopt;
}

Error nvml_error(NvmlCode code, const std::string& what) {
  return make_error(
      kind_of(code),
      fmt::format("cannot {}: {} (NVML {})", what, error_string(code), static_cast<int>(code)),
      hint_for(code));
}

}  // namespace septet::gpu
