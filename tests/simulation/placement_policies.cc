#include "placement_policies.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/prng.h"
#include "gpu/gpu_model.h"
#include "partition/placement.h"

namespace septet::test {
namespace {

using partition::LayoutSpace;
using partition::UnitMask;

constexpr std::array<unsigned, 5> kSlices = {1, 2, 3, 4, 7};
// Orders of starts by size; ParvaGPU's are those of its published allocator.
const std::array<std::vector<unsigned>, 5> kParvaGpuStarts = {
    {{0, 6, 4, 1, 2, 3, 5}, {0, 4, 2}, {4, 0}, {0}, {0}}};
const std::array<std::vector<unsigned>, 5> kHighStarts = {
    {{6, 5, 4, 3, 2, 1, 0}, {4, 2, 0}, {4, 0}, {0}, {0}}};

struct Spot {
  std::size_t gpu = 0;
  unsigned start = 0;
};

class System {
 public:
  System(const LossSystem& system, PlacementPolicy policy)
      : system_(system),
        policy_(policy),
        prng_(system.seed),
        used_(system.gpus, 0),
        slices_(system.gpus, 0) {}

  Accepted run();

 private:
  bool fits(std::size_t gpu, std::size_t size, unsigned start) const {
    return (used_[gpu] & mask(size, start)) == 0;
  }
  UnitMask mask(std::size_t size, unsigned start) const {
    for (const LayoutSpace::Spot& spot : space_.spots(size)) {
      if (spot.start == start) {
        return spot.mask;
      }
    }
    return ~UnitMask{0};
  }
  std::vector<Spot> free_spots(std::size_t size) const;
  std::optional<Spot> choose(std::size_t size);
  std::optional<Spot> random_spot(std::size_t size);
  std::optional<Spot> best_fit(std::size_t size, const std::vector<unsigned>& starts) const;
  std::optional<Spot> driver_like(std::size_t size) const;
  std::optional<Spot> least_count_loss(std::size_t size) const;
  std::optional<Spot> weighted_loss(std::size_t size) const;
  std::size_t placements(UnitMask used) const;
  std::size_t draw_size();
  void leave_until(double now);

  LayoutSpace space_ = base_profiles();
  LossSystem system_;
  PlacementPolicy policy_;
  Prng prng_;
  std::vector<UnitMask> used_;
  std::vector<unsigned> slices_;
  struct Stay {
    std::size_t gpu;
    std::size_t size;
    unsigned start;
  };
  std::multimap<double, Stay> stays_;
};

std::vector<Spot> System::free_spots(std::size_t size) const {
  std::vector<Spot> spots;
  for (std::size_t gpu = 0; gpu < used_.size(); ++gpu) {
    for (const LayoutSpace::Spot& spot : space_.spots(size)) {
      if ((spot.mask & used_[gpu]) == 0) {
        spots.push_back({gpu, spot.start});
      }
    }
  }
  return spots;
}

std::optional<Spot> System::best_fit(std::size_t size, const std::vector<unsigned>& starts) const {
  std::optional<Spot> best;
  for (std::size_t gpu = 0; gpu < used_.size(); ++gpu) {
    for (const unsigned start : starts) {
      if (fits(gpu, size, start)) {
        if (!best || slices_[gpu] > slices_[best->gpu]) {
          best = Spot{gpu, start};
        }
        break;
      }
    }
  }
  return best;
}

// A random GPU that has room, there a random start.
std::optional<Spot> System::random_spot(std::size_t size) {
  std::vector<std::vector<Spot>> by_gpu;
  for (const Spot& spot : free_spots(size)) {
    if (by_gpu.empty() || by_gpu.back().front().gpu != spot.gpu) {
      by_gpu.emplace_back();
    }
    by_gpu.back().push_back(spot);
  }
  if (by_gpu.empty()) {
    return std::nullopt;
  }
  const std::vector<Spot>& spots = by_gpu[prng_.below(by_gpu.size())];
  return spots[prng_.below(spots.size())];
}

std::size_t System::placements(UnitMask used) const {
  std::size_t count = 0;
  for (std::size_t size = 0; size < kSlices.size(); ++size) {
    for (const LayoutSpace::Spot& spot : space_.spots(size)) {
      count += (spot.mask & used) == 0 ? 1 : 0;
    }
  }
  return count;
}

// The fullest GPU that has room; there the start that leaves the most placements, the lowest first.
std::optional<Spot> System::driver_like(std::size_t size) const {
  std::optional<Spot> best;
  for (const Spot& spot : free_spots(size)) {
    const auto left = [&](const Spot& s) { return placements(used_[s.gpu] | mask(size, s.start)); };
    const bool fuller = best && slices_[spot.gpu] > slices_[best->gpu];
    const bool same_gpu = best && spot.gpu == best->gpu;
    if (!best || fuller || (same_gpu && left(spot) > left(*best))) {
      best = spot;
    }
  }
  return best;
}

std::optional<Spot> System::least_count_loss(std::size_t size) const {
  std::optional<Spot> best;
  const auto rank = [&](const Spot& spot) {
    const std::size_t lost =
        placements(used_[spot.gpu]) - placements(used_[spot.gpu] | mask(size, spot.start));
    return std::tuple(lost, 7 - slices_[spot.gpu], spot.gpu, 7 - spot.start);
  };
  for (const Spot& spot : free_spots(size)) {
    if (!best || rank(spot) < rank(*best)) {
      best = spot;
    }
  }
  return best;
}

std::optional<Spot> System::weighted_loss(std::size_t size) const {
  std::vector<partition::PlacementCandidate> candidates;
  for (const UnitMask used : used_) {
    candidates.push_back({space_, used, {size}});
  }
  const auto choice = partition::place_online(candidates);
  return choice ? std::optional(Spot{choice->candidate, choice->start}) : std::nullopt;
}

std::optional<Spot> System::choose(std::size_t size) {
  switch (policy_) {
    case PlacementPolicy::kRandom: {
      return random_spot(size);
    }
    case PlacementPolicy::kFirstFit: {
      const std::vector<Spot> spots = free_spots(size);
      return spots.empty() ? std::nullopt : std::optional(spots.front());
    }
    case PlacementPolicy::kBestFitParvaGpu:
      return best_fit(size, kParvaGpuStarts[size]);
    case PlacementPolicy::kBestFitHighStarts:
      return best_fit(size, kHighStarts[size]);
    case PlacementPolicy::kDriverLike:
      return driver_like(size);
    case PlacementPolicy::kLeastCountLoss:
      return least_count_loss(size);
    case PlacementPolicy::kWeightedLoss:
      return weighted_loss(size);
  }
  return std::nullopt;
}

std::size_t System::draw_size() {
  double left = prng_.uniform();
  for (std::size_t size = 0; size + 1 < kSlices.size(); ++size) {
    left -= system_.mix[size];
    if (left < 0) {
      return size;
    }
  }
  return kSlices.size() - 1;
}

void System::leave_until(double now) {
  while (!stays_.empty() && stays_.begin()->first <= now) {
    const Stay stay = stays_.begin()->second;
    used_[stay.gpu] &= ~mask(stay.size, stay.start);
    slices_[stay.gpu] -= kSlices[stay.size];
    stays_.erase(stays_.begin());
  }
}

Accepted System::run() {
  double mean_slices = 0;
  for (std::size_t size = 0; size < kSlices.size(); ++size) {
    mean_slices += system_.mix[size] * kSlices[size];
  }
  const double rate = system_.load * 7 * system_.gpus / mean_slices;  // the mean stay is 1
  double now = 0;
  std::uint64_t offered = 0;
  std::uint64_t accepted = 0;
  std::uint64_t offered_slices = 0;
  std::uint64_t accepted_slices = 0;
  for (unsigned i = 0; i < system_.arrivals; ++i) {
    now += prng_.exponential() / rate;
    leave_until(now);
    const std::size_t size = draw_size();
    const double stay = prng_.exponential();  // drawn also for the lost: the same work for all
    const bool counts = i >= system_.arrivals / 10;
    offered += counts ? 1 : 0;
    offered_slices += counts ? kSlices[size] : 0;
    if (const auto spot = choose(size)) {
      used_[spot->gpu] |= mask(size, spot->start);
      slices_[spot->gpu] += kSlices[size];
      stays_.emplace(now + stay, Stay{spot->gpu, size, spot->start});
      accepted += counts ? 1 : 0;
      accepted_slices += counts ? kSlices[size] : 0;
    }
  }
  const auto percent = [](std::uint64_t part, std::uint64_t whole) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  return {percent(accepted, offered), percent(accepted_slices, offered_slices)};
}

}  // namespace

const char* to_string(PlacementPolicy policy) {
  switch (policy) {
    case PlacementPolicy::kRandom:
      return "random";
    case PlacementPolicy::kFirstFit:
      return "first fit, lowest start";
    case PlacementPolicy::kBestFitParvaGpu:
      return "best fit, ParvaGPU starts";
    case PlacementPolicy::kBestFitHighStarts:
      return "best fit, high starts";
    case PlacementPolicy::kDriverLike:
      return "best fit, driver-like start";
    case PlacementPolicy::kLeastCountLoss:
      return "least count loss";
    case PlacementPolicy::kWeightedLoss:
      return "weighted loss";
  }
  return "";
}

LayoutSpace base_profiles() {
  const auto model = gpu::find_gpu_model("A100-SXM4-40GB");
  CHECK(model.ok());
  std::vector<gpu::GpuInstanceProfile> profiles;
  for (const char* name : {"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}) {
    for (const gpu::GpuInstanceProfile& profile : (*model)->profiles) {
      if (profile.name == name) {
        profiles.push_back(profile);
      }
    }
  }
  auto space = LayoutSpace::create(std::move(profiles));
  CHECK(space.ok());
  return *std::move(space);
}

Accepted run_loss_system(const LossSystem& system, PlacementPolicy policy) {
  return System(system, policy).run();
}

}  // namespace septet::test
