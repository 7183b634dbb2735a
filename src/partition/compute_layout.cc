#include "partition/compute_layout.h"

#include <algorithm>
#include <bit>

#include "partition/layout_space.h"

namespace septet::partition {
namespace {

// Places the wanted ones from `next` on (largest first) around what is taken.
bool place_all(unsigned total, std::span<const unsigned> wanted, UnitMask taken) {
  if (wanted.empty()) {
    return true;
  }
  for (const unsigned start : compute_starts(total, wanted.front())) {
    const UnitMask mask = LayoutSpace::mask_of({start, wanted.front()});
    if ((mask & taken) == 0 && place_all(total, wanted.subspan(1), taken | mask)) {
      return true;
    }
  }
  return false;
}

// The change when exactly the chosen existing ones stay, or nothing when that does not work.
std::optional<ComputeChange> change_keeping(unsigned total,
                                            std::span<const ExistingCompute> existing,
                                            std::vector<unsigned> wanted, UnitMask kept) {
  ComputeChange change;
  UnitMask taken = 0;
  for (std::size_t i = 0; i < existing.size(); ++i) {
    if (((kept >> i) & 1) == 0) {
      if (existing[i].busy) {
        return std::nullopt;
      }
      change.destroy.push_back(existing[i].id);
      continue;
    }
    const auto match = std::find(wanted.begin(), wanted.end(), existing[i].placement.size);
    if (match == wanted.end()) {
      return std::nullopt;
    }
    wanted.erase(match);
    taken |= LayoutSpace::mask_of(existing[i].placement);
  }
  if (!place_all(total, wanted, taken)) {
    return std::nullopt;
  }
  change.create = std::move(wanted);
  return change;
}

}  // namespace

std::vector<unsigned> compute_starts(unsigned gpu_instance_slices, unsigned slices) {
  std::vector<unsigned> starts;
  if (slices == 0 || slices > gpu_instance_slices) {
    return starts;
  }
  if (slices == gpu_instance_slices) {
    return {0};
  }
  if (slices > (gpu_instance_slices + 1) / 2) {
    return starts;
  }
  for (unsigned start = 0; start + slices <= gpu_instance_slices; start += std::bit_ceil(slices)) {
    starts.push_back(start);
  }
  return starts;
}

bool compute_fits(unsigned gpu_instance_slices, std::span<const unsigned> slices) {
  std::vector<unsigned> wanted(slices.begin(), slices.end());
  std::sort(wanted.rbegin(), wanted.rend());
  return place_all(gpu_instance_slices, wanted, 0);
}

unsigned most_compute(unsigned gpu_instance_slices, unsigned slices) {
  return static_cast<unsigned>(compute_starts(gpu_instance_slices, slices).size());
}

std::optional<ComputeChange> plan_compute(unsigned gpu_instance_slices,
                                          std::span<const ExistingCompute> existing,
                                          std::vector<unsigned> wanted) {
  std::sort(wanted.rbegin(), wanted.rend());
  std::optional<ComputeChange> best;
  const UnitMask subsets = UnitMask{1} << existing.size();
  for (UnitMask kept = subsets; kept-- > 0;) {
    auto change = change_keeping(gpu_instance_slices, existing, wanted, kept);
    if (change && (!best || change->destroy.size() < best->destroy.size())) {
      best = std::move(change);
    }
  }
  return best;
}

}  // namespace septet::partition
