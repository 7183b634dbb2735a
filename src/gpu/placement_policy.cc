#include "gpu/placement_policy.h"

#include <algorithm>

namespace septet::gpu {

bool is_free(const Placement& span, const std::vector<Placement>& taken) {
  return std::none_of(taken.begin(), taken.end(),
                      [&](const Placement& other) { return span.overlaps(other); });
}

std::vector<Placement> free_spans(const std::vector<Placement>& legal,
                                  const std::vector<Placement>& taken) {
  std::vector<Placement> result;
  for (const Placement& span : legal) {
    if (is_free(span, taken)) {
      result.push_back(span);
    }
  }
  return result;
}

unsigned count_disjoint(const std::vector<Placement>& spans) {
  unsigned count = 0;
  unsigned next = 0;
  for (const Placement& span : spans) {
    if (span.start >= next) {
      ++count;
      next = span.end();
    }
  }
  return count;
}

std::optional<Placement> least_harmful_span(const std::vector<Placement>& legal,
                                            const std::vector<Placement>& taken,
                                            const std::vector<Placement>& all) {
  const std::vector<Placement> possible = free_spans(all, taken);
  std::optional<Placement> best;
  std::ptrdiff_t best_left = -1;
  for (const Placement& span : free_spans(legal, taken)) {
    const auto left = std::count_if(possible.begin(), possible.end(),
                                    [&](const Placement& other) { return !span.overlaps(other); });
    if (left > best_left) {
      best = span;
      best_left = left;
    }
  }
  return best;
}

namespace {

// NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME and _2_SLICE_ALL_ME.
bool takes_all_media_engines(const GpuInstanceProfile* profile) {
  return profile->nvml_enum == 0xF || profile->nvml_enum == 0x10;
}

}  // namespace

bool media_engines_suffice(const std::vector<GpuInstanceProfile>& all,
                           const std::vector<const GpuInstanceProfile*>& chosen) {
  if (std::none_of(chosen.begin(), chosen.end(), takes_all_media_engines)) {
    return true;
  }
  EngineCounts budget;
  for (const GpuInstanceProfile& profile : all) {
    budget.decoders = std::max(budget.decoders, profile.engines.decoders);
    budget.encoders = std::max(budget.encoders, profile.engines.encoders);
    budget.jpeg = std::max(budget.jpeg, profile.engines.jpeg);
    budget.ofa = std::max(budget.ofa, profile.engines.ofa);
  }
  EngineCounts used;
  for (const GpuInstanceProfile* profile : chosen) {
    used.decoders += profile->engines.decoders;
    used.encoders += profile->engines.encoders;
    used.jpeg += profile->engines.jpeg;
    used.ofa += profile->engines.ofa;
  }
  return used.decoders <= budget.decoders && used.encoders <= budget.encoders &&
         used.jpeg <= budget.jpeg && used.ofa <= budget.ofa;
}

}  // namespace septet::gpu
