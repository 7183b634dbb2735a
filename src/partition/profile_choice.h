// Which of a GPU's profiles a selector means.
//
// Pure. Names are hints: a name of another driver or firmware (7g.79gb for 7g.80gb, 1g.24gb for
// 1g.23gb) is matched by slices and attributes when the memory is within a twelfth
// (so that 1g.5gb and 1g.6gb, which are different GPUs, stay apart).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/types.h"
#include "partition/want.h"

namespace septet::partition {

struct ProfileChoice {
  std::vector<std::size_t> profiles;  // indexes into the GPU's profiles; never empty
  unsigned compute_slices = 0;        // of the compute instance asked for; 0 = the whole instance
  std::string note{};                 // what was read differently from what was typed; may be empty
};

// kNotFound says what this GPU has and the nearest name.
Result<ProfileChoice> choose_profiles(const ProfileSelector& selector,
                                      std::span<const gpu::GpuInstanceProfile> profiles);

// Memory in GB as the profile's name says it ("3g.20gb": 20), or rounded up from MiB.
unsigned nominal_memory_gb(const gpu::GpuInstanceProfile& profile);
// Whether the name carries an attribute (+me, -me, +gfx): a variant of a plain profile.
bool is_variant(const gpu::GpuInstanceProfile& profile);
// "1g.5gb, 1g.5gb+me and 2g.10gb".
std::string profile_names(std::span<const gpu::GpuInstanceProfile> profiles);

}  // namespace septet::partition
