// LayoutSpace: every place where a GPU's profiles may stand, as bit masks over placement units.
//
//   unit        0 1 2 3 4 5 6 7         mask of 2g.10gb at 4:  0b00110000
//              +---+---+---+-+-+
//              |   |   |2g |1| |        a layout is a set of disjoint masks
//              +---+---+---+-+-+
//
// Built from what the driver says (or from a GPU model); immutable afterwards, any thread may read
// it. Works for any number of units up to kMostUnits; nothing here knows an A100.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "gpu/types.h"

namespace septet::partition {

using UnitMask = std::uint64_t;
inline constexpr unsigned kMostUnits = 64;

class LayoutSpace {
 public:
  struct Spot {
    unsigned start = 0;
    UnitMask mask = 0;
    bool operator==(const Spot&) const = default;
  };

  // kFailed when the profiles are none, contradict themselves or need more than kMostUnits.
  static Result<LayoutSpace> create(std::vector<gpu::GpuInstanceProfile> profiles);

  const std::vector<gpu::GpuInstanceProfile>& profiles() const { return profiles_; }
  const gpu::GpuInstanceProfile& profile(std::size_t index) const { return profiles_[index]; }
  // The legal spots of a profile, ascending by start.
  const std::vector<Spot>& spots(std::size_t profile) const { return spots_[profile]; }
  unsigned units() const { return units_; }
  unsigned compute_slices() const { return compute_slices_; }

  // The index of the profile with the id; profiles().size() when there is none.
  std::size_t index_of(gpu::ProfileId id) const;

  // How much could still be placed when these units are taken: over every kind of place, its slices
  // times the number of its free spots (the weighted count of docs/measurements/placement.md).
  // Variants of the same size count once.
  std::uint64_t future_capacity(UnitMask used) const;
  // How many more instances of the profile fit side by side, at most up to its own limit.
  unsigned remaining(std::size_t profile, UnitMask used, unsigned existing) const;

  static UnitMask mask_of(const gpu::Placement& placement);

 private:
  std::vector<gpu::GpuInstanceProfile> profiles_;
  std::vector<std::vector<Spot>> spots_;
  std::vector<std::size_t> kinds_;  // one profile of each distinct (slices, spots)
  unsigned units_ = 0;
  unsigned compute_slices_ = 0;
};

// A profile standing somewhere; by index, for searching.
struct PlacedProfile {
  std::size_t profile = 0;
  unsigned start = 0;
  auto operator<=>(const PlacedProfile&) const = default;
};

// Calls visit(layout, used) for every legal layout, the empty one included, each exactly once.
// Layouts come in no promised order but always in the same one. `layout` is sorted by start.
template <typename Visit>
void for_each_layout(const LayoutSpace& space, const Visit& visit);

namespace detail {

template <typename Visit>
void extend_layout(const LayoutSpace& space, unsigned from, UnitMask used,
                   std::vector<PlacedProfile>& layout, std::vector<unsigned>& counts,
                   const Visit& visit) {
  visit(std::as_const(layout), used);
  for (unsigned start = from; start < space.units(); ++start) {
    for (std::size_t profile = 0; profile < space.profiles().size(); ++profile) {
      for (const LayoutSpace::Spot& spot : space.spots(profile)) {
        if (spot.start != start || (spot.mask & used) != 0 ||
            counts[profile] >= space.profile(profile).max_instances) {
          continue;
        }
        layout.push_back({profile, start});
        ++counts[profile];
        extend_layout(space, start + 1, used | spot.mask, layout, counts, visit);
        --counts[profile];
        layout.pop_back();
      }
    }
  }
}

}  // namespace detail

template <typename Visit>
void for_each_layout(const LayoutSpace& space, const Visit& visit) {
  std::vector<PlacedProfile> layout;
  std::vector<unsigned> counts(space.profiles().size(), 0);
  detail::extend_layout(space, 0, 0, layout, counts, visit);
}

}  // namespace septet::partition
