// NvmlCode: what NVML answers, and the one translation of it into domain errors.
//
// Values and texts: NVML's documentation; texts as nvmlErrorString of driver 535 prints them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace septet::gpu {

enum class NvmlCode : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kAlreadyInitialized = 5,
  kNotFound = 6,
  kInsufficientSize = 7,
  kInsufficientPower = 8,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kIrqIssue = 11,
  kLibraryNotFound = 12,
  kFunctionNotFound = 13,
  kCorruptedInforom = 14,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kOperatingSystem = 17,
  kLibRmVersionMismatch = 18,
  kInUse = 19,
  kMemory = 20,
  kNoData = 21,
  kVgpuEccNotSupported = 22,
  kInsufficientResources = 23,
  kFreqNotSupported = 24,
  kArgumentVersionMismatch = 25,
  kDeprecated = 26,
  kNotReady = 27,
  kGpuNotFound = 28,
  kInvalidState = 29,
  kUnknown = 999,
};

// NVML's own text: "In use by another client". A static string.
const char* error_string(NvmlCode code);
// The word for configuration files: "in_use", "insufficient_resources"; "error_17" never appears.
std::string_view code_name(NvmlCode code);
// The code called so, by word or by number.
std::optional<NvmlCode> parse_nvml_code(std::string_view text);

// The domain error for a failed call: `what` was tried ("create a GPU instance 1g.5gb on GPU 0").
Error nvml_error(NvmlCode code, const std::string& what);

}  // namespace septet::gpu
