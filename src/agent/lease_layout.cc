#include "agent/lease_layout.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "lend/slice_want.h"
#include "partition/layout_space.h"

namespace septet::agent {

namespace {

using partition::LayoutSpace;
using partition::UnitMask;

constexpr std::size_t kMostInstances = 12;  // of any GPU; bounds the search

// The smallest profile that serves the want; variants for media or graphics only when named.
std::optional<std::size_t> profile_for(const LayoutSpace& space, const lend::SliceWant& want) {
  std::optional<std::size_t> best;
  const auto size = [&](std::size_t index) {
    const gpu::GpuInstanceProfile& profile = space.profile(index);
    return std::tuple(space.spots(index).empty() ? 0 : std::popcount(space.spots(index)[0].mask),
                      profile.slices, profile.memory_mib);
  };
  for (std::size_t i = 0; i < space.profiles().size(); ++i) {
    const gpu::GpuInstanceProfile& profile = space.profile(i);
    lend::Partition imagined;
    imagined.profile = profile.name;
    imagined.memory_mib = profile.memory_mib;
    const bool is_variant = profile.name.find_first_of("+-") != std::string::npos;
    if (could_serve(imagined, want) && (!is_variant || want.profile == profile.name) &&
        (!best || size(i) < size(*best))) {
      best = i;
    }
  }
  return best;
}

class RoomSearch {
 public:
  RoomSearch(const gpu::GpuState& state, const LayoutSpace& space, std::size_t profile,
             unsigned count)
      : state_(state), space_(space), profile_(profile), count_(count) {}

  // The starts of `count` new instances beside the taken units that leave the most capacity.
  bool place(UnitMask taken) {
    best_.reset();
    chosen_.clear();
    place_from(0, taken);
    return best_.has_value();
  }

  partition::Layout layout_without(const std::vector<bool>& goes) const {
    partition::Layout layout;
    const partition::Layout now = partition::layout_of(state_);
    for (const partition::LayoutInstance& instance : now.instances) {
      for (std::size_t i = 0; i < state_.instances.size(); ++i) {
        if (state_.instances[i].placement == instance.placement && !goes[i]) {
          layout.instances.push_back(instance);
        }
      }
    }
    const gpu::GpuInstanceProfile& profile = space_.profile(profile_);
    for (const std::size_t spot : *best_) {
      const unsigned start = space_.spots(profile_)[spot].start;
      const unsigned size = static_cast<unsigned>(std::popcount(space_.spots(profile_)[spot].mask));
      layout.instances.push_back({profile.id, profile.name, {start, size}, {profile.slices}});
    }
    std::sort(layout.instances.begin(), layout.instances.end(),
              [](const auto& a, const auto& b) { return a.placement.start < b.placement.start; });
    return layout;
  }

 private:
  void place_from(std::size_t first, UnitMask taken) {
    if (chosen_.size() == count_) {
      const std::uint64_t capacity = space_.future_capacity(taken);
      if (!best_ || capacity > best_capacity_) {
        best_ = chosen_;
        best_capacity_ = capacity;
      }
      return;
    }
    const auto& spots = space_.spots(profile_);
    for (std::size_t i = first; i < spots.size(); ++i) {
      if ((spots[i].mask & taken) == 0) {
        chosen_.push_back(i);
        place_from(i + 1, taken | spots[i].mask);
        chosen_.pop_back();
      }
    }
  }

  const gpu::GpuState& state_;
  const LayoutSpace& space_;
  std::size_t profile_;
  unsigned count_;
  std::vector<std::size_t> chosen_;
  std::optional<std::vector<std::size_t>> best_;
  std::uint64_t best_capacity_ = 0;
};

// One instance as the search sees it.
struct Piece {
  UnitMask mask = 0;
  unsigned slices = 0;
  bool is_idle = true;  // nobody has any of its compute instances
  bool serves = false;  // it is what is wanted already, and idle: it stays
  bool same_profile = false;
};

std::vector<Piece> pieces_of(const gpu::GpuState& state, const LayoutSpace& space,
                             const lend::SliceWant& want, std::size_t profile,
                             const std::vector<lend::PartitionId>& idle) {
  std::vector<Piece> pieces;
  for (const gpu::GpuInstance& instance : state.instances) {
    Piece piece;
    piece.mask = LayoutSpace::mask_of(instance.placement);
    const std::size_t index = space.index_of(instance.profile_id);
    if (index < space.profiles().size()) {
      piece.slices = space.profile(index).slices;
      lend::Partition imagined;
      imagined.profile = space.profile(index).name;
      imagined.memory_mib = space.profile(index).memory_mib;
      piece.serves = could_serve(imagined, want);
      piece.same_profile = index == profile;
    }
    for (const gpu::ComputeInstance& compute : instance.compute_instances) {
      piece.is_idle =
          piece.is_idle && std::find(idle.begin(), idle.end(),
                                     lend::PartitionId(compute.uuid.value())) != idle.end();
    }
    piece.serves = piece.serves && piece.is_idle;
    pieces.push_back(piece);
  }
  return pieces;
}

}  // namespace

std::optional<LeaseRoom> find_room(const gpu::GpuState& state, const lend::SliceWant& want,
                                   unsigned count, const std::vector<lend::PartitionId>& idle) {
  if (state.mig_current != gpu::MigMode::kEnabled || state.instances.size() > kMostInstances) {
    return std::nullopt;
  }
  const Result<LayoutSpace> space = LayoutSpace::create(state.profiles);
  const std::optional<std::size_t> profile = space.ok() ? profile_for(*space, want) : std::nullopt;
  if (!profile) {
    return std::nullopt;
  }
  const std::vector<Piece> pieces = pieces_of(state, *space, want, *profile, idle);
  RoomSearch search(state, *space, *profile, count);
  std::optional<LeaseRoom> best;
  std::tuple<unsigned, unsigned, unsigned> best_cost;
  for (std::uint32_t set = 0; set < (1U << pieces.size()); ++set) {
    std::vector<bool> goes(pieces.size());
    UnitMask taken = 0;
    unsigned lent = 0;
    unsigned slices = 0;
    unsigned same = 0;
    bool keeps_what_serves = true;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      goes[i] = (set >> i & 1U) != 0;
      if (!goes[i]) {
        taken |= pieces[i].mask;
        same += pieces[i].same_profile ? 1 : 0;
        continue;
      }
      lent += pieces[i].is_idle ? 0 : 1;
      slices += pieces[i].slices;
      keeps_what_serves = keeps_what_serves && !pieces[i].serves;
    }
    const std::tuple cost(lent, slices, static_cast<unsigned>(std::popcount(set)));
    if (!keeps_what_serves || same + count > space->profile(*profile).max_instances ||
        (best && best_cost <= cost) || !search.place(taken)) {
      continue;
    }
    LeaseRoom room{search.layout_without(goes), {}, lent == 0, slices};
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      for (const gpu::ComputeInstance& compute : state.instances[i].compute_instances) {
        if (goes[i]) {
          room.dropped.emplace_back(compute.uuid.value());
        }
      }
    }
    best = std::move(room);
    best_cost = cost;
  }
  return best;
}

}  // namespace septet::agent
