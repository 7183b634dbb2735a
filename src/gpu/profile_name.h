// The name of a GPU instance profile, where the driver tells none.
#pragma once

#include <cstdint>
#include <string>

#include "gpu/types.h"

namespace septet::gpu {

// "1g.18gb+me" from slices, memory and the enum's variant, as go-nvlib derives it: gigabytes are
// the eighths of the whole memory that the profile needs, times the whole in GiB, rounded half
// away.
std::string derived_profile_name(const GpuInstanceProfile& profile, std::int64_t memory_total_mib);

}  // namespace septet::gpu
