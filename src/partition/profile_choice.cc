#include "partition/profile_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace septet::partition {
namespace {

using gpu::GpuInstanceProfile;

Error not_found(const ProfileSelector& selector, std::span<const GpuInstanceProfile> profiles) {
  std::vector<std::string> names;
  for (const GpuInstanceProfile& profile : profiles) {
    names.push_back(profile.name);
  }
  std::string hint =
      profiles.empty() ? "this GPU has no MIG profiles" : "it has " + profile_names(profiles);
  if (const auto nearest = nearest_name(selector.text, names)) {
    hint = fmt::format("did you mean {}? {}", *nearest, hint);
  }
  return make_error(ErrorKind::kNotFound,
                    fmt::format("no profile of this GPU is called '{}'", selector.text), hint);
}

bool same_kind(const ProfileName& a, const ProfileName& b) {
  return a.slices == b.slices && a.attributes == b.attributes &&
         (a.attributes.empty() || a.sign == b.sign);
}

unsigned distance(unsigned a, unsigned b) { return a > b ? a - b : b - a; }

Result<ProfileChoice> choose_by_name(const ProfileSelector& selector,
                                     std::span<const GpuInstanceProfile> profiles) {
  const ProfileName& wanted = *selector.name;
  std::optional<std::size_t> best;
  const auto rank = [&](std::size_t i) {
    const unsigned memory = nominal_memory_gb(profiles[i]);
    return wanted.memory_gb ? distance(memory, *wanted.memory_gb) : memory;
  };
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const auto name = parse_profile_name(profiles[i].name);
    if (name && same_kind(*name, wanted) && (!best || rank(i) < rank(*best))) {
      best = i;
    }
  }
  if (!best) {
    return not_found(selector, profiles);
  }
  ProfileChoice choice{.profiles = {*best}};
  if (wanted.compute_slices && *wanted.compute_slices != wanted.slices) {
    choice.compute_slices = *wanted.compute_slices;
  }
  if (wanted.memory_gb && rank(*best) != 0) {
    if (rank(*best) > *wanted.memory_gb / 12) {
      return not_found(selector, profiles);
    }
    choice.note =
        fmt::format("{} is called {} by this driver", selector.text, profiles[*best].name);
  }
  return choice;
}

}  // namespace

unsigned nominal_memory_gb(const GpuInstanceProfile& profile) {
  const auto name = parse_profile_name(profile.name);
  if (name && name->memory_gb) {
    return *name->memory_gb;
  }
  return static_cast<unsigned>((profile.memory_mib + 1023) / 1024);
}

bool is_variant(const GpuInstanceProfile& profile) {
  return profile.name.find_first_of("+-") != std::string::npos;
}

std::string profile_names(std::span<const GpuInstanceProfile> profiles) {
  std::vector<std::string> names;
  for (const GpuInstanceProfile& profile : profiles) {
    names.push_back(profile.name);
  }
  return join_words(names);
}

Result<ProfileChoice> choose_profiles(const ProfileSelector& selector,
                                      std::span<const GpuInstanceProfile> profiles) {
  if (selector.name) {
    return choose_by_name(selector, profiles);
  }
  ProfileChoice choice;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const GpuInstanceProfile& profile = profiles[i];
    const bool large_enough =
        (selector.at_least_memory_gb &&
         nominal_memory_gb(profile) >= *selector.at_least_memory_gb) ||
        (selector.at_least_slices && profile.slices >= *selector.at_least_slices);
    if (selector.id ? profile.id == *selector.id : large_enough && !is_variant(profile)) {
      choice.profiles.push_back(i);
    }
  }
  if (choice.profiles.empty()) {
    return not_found(selector, profiles);
  }
  return choice;
}

}  // namespace septet::partition
