#include "gpu/profile_name.h"

#include <fmt/format.h>

#include <cmath>

namespace septet::gpu {
namespace {

// What NVML's enum says beyond the size.
const char* variant_of(unsigned nvml_enum) {
  switch (nvml_enum) {
    case 0x7:
    case 0x8:
      return "+me";
    case 0xA:
    case 0xB:
    case 0xC:
    case 0x11:
      return "+gfx";
    case 0xD:
    case 0xE:
      return "-me";
    case 0xF:
    case 0x10:
      return "+me.all";
    default:
      return "";
  }
}

}  // namespace

std::string derived_profile_name(const GpuInstanceProfile& profile, std::int64_t memory_total_mib) {
  const auto total = static_cast<double>(memory_total_mib);
  const double eighths = std::ceil(8 * static_cast<double>(profile.memory_mib) / total);
  const long gigabytes = std::lround(eighths / 8 * std::ceil(total / 1024));
  return fmt::format("{}g.{}gb{}", profile.slices, gigabytes, variant_of(profile.nvml_enum));
}

}  // namespace septet::gpu
