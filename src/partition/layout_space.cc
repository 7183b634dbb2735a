#include "partition/layout_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "partition/profile_choice.h"

namespace septet::partition {
namespace {

// The driver's counts are wrong on some chips (A30). A plain profile is limited by its places
// alone, one with media engines of its own exists once (NVIDIA's MIG guide); others as reported.
unsigned trusted_limit(const gpu::GpuInstanceProfile& profile, unsigned side_by_side) {
  if (!is_variant(profile)) {
    return std::max(profile.max_instances, side_by_side);
  }
  const bool media = profile.name.find("+me") != std::string::npos;
  return media ? std::min(profile.max_instances, 1U) : profile.max_instances;
}

unsigned disjoint_spots(const std::vector<LayoutSpace::Spot>& spots) {
  unsigned count = 0;
  UnitMask used = 0;
  for (const LayoutSpace::Spot& spot : spots) {
    if ((spot.mask & used) == 0) {
      used |= spot.mask;
      ++count;
    }
  }
  return count;
}

}  // namespace

Result<LayoutSpace> LayoutSpace::create(std::vector<gpu::GpuInstanceProfile> profiles) {
  LayoutSpace space;
  if (profiles.empty()) {
    return make_error(
        ErrorKind::kPrecondition, "this GPU offers no MIG profiles",
        "only MIG-capable GPUs (A30, A100, H100, H200, B200 and others) can be split");
  }
  for (const gpu::GpuInstanceProfile& profile : profiles) {
    std::vector<Spot> spots;
    for (const gpu::Placement& placement : profile.placements) {
      if (placement.size == 0 || placement.end() > kMostUnits) {
        return make_error(ErrorKind::kFailed,
                          fmt::format("profile {} has the placement {}:{}, which is none",
                                      profile.name, placement.start, placement.size),
                          "report this with the output of septet profiles -o json");
      }
      spots.push_back({placement.start, mask_of(placement)});
      space.units_ = std::max(space.units_, placement.end());
    }
    std::sort(spots.begin(), spots.end(),
              [](const Spot& a, const Spot& b) { return a.start < b.start; });
    space.spots_.push_back(std::move(spots));
    space.compute_slices_ = std::max(space.compute_slices_, profile.slices);
  }
  space.profiles_ = std::move(profiles);
  for (std::size_t i = 0; i < space.profiles_.size(); ++i) {
    gpu::GpuInstanceProfile& profile = space.profiles_[i];
    profile.max_instances = trusted_limit(profile, disjoint_spots(space.spots_[i]));
  }
  for (std::size_t i = 0; i < space.profiles_.size(); ++i) {
    const bool known = std::any_of(space.kinds_.begin(), space.kinds_.end(), [&](std::size_t kind) {
      return space.profiles_[kind].slices == space.profiles_[i].slices &&
             space.spots_[kind] == space.spots_[i];
    });
    if (!known) {
      space.kinds_.push_back(i);
    }
  }
  return space;
}

std::size_t LayoutSpace::index_of(gpu::ProfileId id) const {
  const auto found = std::find_if(profiles_.begin(), profiles_.end(),
                                  [&](const auto& profile) { return profile.id == id; });
  return static_cast<std::size_t>(found - profiles_.begin());
}

std::uint64_t LayoutSpace::future_capacity(UnitMask used) const {
  std::uint64_t value = 0;
  for (const std::size_t kind : kinds_) {
    for (const Spot& spot : spots_[kind]) {
      value += (spot.mask & used) == 0 ? profiles_[kind].slices : 0;
    }
  }
  return value;
}

unsigned LayoutSpace::remaining(std::size_t profile, UnitMask used, unsigned existing) const {
  const unsigned limit = profiles_[profile].max_instances;
  unsigned count = 0;
  // All spots of one profile are equally long, so taking the earliest end first is optimal.
  for (const Spot& spot : spots_[profile]) {
    if ((spot.mask & used) == 0 && existing + count < limit) {
      used |= spot.mask;
      ++count;
    }
  }
  return count;
}

UnitMask LayoutSpace::mask_of(const gpu::Placement& placement) {
  CHECK(placement.end() <= kMostUnits && placement.size > 0);
  const UnitMask ones =
      placement.size == kMostUnits ? ~UnitMask{0} : (UnitMask{1} << placement.size) - 1;
  return ones << placement.start;
}

}  // namespace septet::partition
