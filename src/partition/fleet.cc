#include "partition/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/text.h"
#include "partition/layout_search.h"
#include "partition/profile_choice.h"

namespace septet::partition {
namespace {

// One wish, as each GPU reads it: empty where a GPU has no such profile.
struct FleetWish {
  std::string text;
  std::vector<std::optional<Wish>> per_gpu;
  unsigned size = 0;  // units it needs on the first GPU that has it; the largest go first
};

struct FleetGpu {
  const gpu::GpuState* state = nullptr;
  LayoutSpace space;
  std::vector<ExistingInstance> existing;
  std::vector<std::size_t> taken;  // wishes
  unsigned used_units = 0;         // by what is taken, and by what is kept
  unsigned needed_slices = 0;
};

class FleetSearch {
 public:
  FleetSearch(std::vector<FleetGpu> gpus, std::vector<FleetWish> wishes, const PlanOptions& options,
              Distribution distribution)
      : gpus_(std::move(gpus)),
        wishes_(std::move(wishes)),
        options_(options),
        distribution_(distribution) {}

  bool place_from(std::size_t wish);
  std::vector<FleetGpu>& gpus() { return gpus_; }
  std::size_t most_placed() const { return most_placed_; }
  bool gave_up() const { return tries_ >= kMostTries; }
  PlanRequest request_for(const FleetGpu& gpu) const;

 private:
  std::vector<std::size_t> order_for(std::size_t wish) const;
  bool has_unclaimed(const FleetGpu& gpu, std::size_t g, std::size_t wish) const;
  bool fits(std::size_t g, std::size_t wish);
  std::string key_of(const FleetGpu& gpu) const;

  std::vector<FleetGpu> gpus_;
  std::vector<FleetWish> wishes_;
  const PlanOptions& options_;
  Distribution distribution_;
  unsigned tries_ = 0;
  std::size_t most_placed_ = 0;
  std::map<std::string, bool> known_;  // by GPU kind, state and wishes
};

PlanRequest FleetSearch::request_for(const FleetGpu& gpu) const {
  PlanRequest request{.space = gpu.space,
                      .existing = gpu.existing,
                      .wishes = {},
                      .policy = options_.policy,
                      .may_drain = options_.may_drain};
  const auto position = static_cast<std::size_t>(&gpu - gpus_.data());
  for (const std::size_t wish : gpu.taken) {
    request.wishes.push_back(*wishes_[wish].per_gpu[position]);
  }
  return request;
}

// What tells one GPU from another for the search; equal keys are interchangeable.
std::string FleetSearch::key_of(const FleetGpu& gpu) const {
  std::string key = gpu.state->name;
  for (const ExistingInstance& existing : gpu.existing) {
    key += fmt::format("|{}@{}{}", existing.instance.profile_id.value(),
                       existing.instance.placement.start, static_cast<int>(existing.occupancy));
  }
  std::vector<std::string> texts;
  for (const std::size_t wish : gpu.taken) {
    texts.push_back(wishes_[wish].text);
  }
  std::sort(texts.begin(), texts.end());
  return fmt::format("{}#{}", key, fmt::join(texts, ","));
}

// Whether the GPU has an instance like this that no taken wish keeps (by count).
bool FleetSearch::has_unclaimed(const FleetGpu& gpu, std::size_t g, std::size_t wish) const {
  const Wish& wanted = *wishes_[wish].per_gpu[g];
  const auto like = [&](std::size_t profile) {
    return std::find(wanted.profiles.begin(), wanted.profiles.end(), profile) !=
           wanted.profiles.end();
  };
  std::size_t there = 0;
  for (const ExistingInstance& existing : gpu.existing) {
    there += like(gpu.space.index_of(existing.instance.profile_id)) ? 1 : 0;
  }
  std::size_t claimed = 0;
  for (const std::size_t taken : gpu.taken) {
    claimed += like(wishes_[taken].per_gpu[g]->profiles.front()) ? 1 : 0;
  }
  return claimed < there;
}

std::vector<std::size_t> FleetSearch::order_for(std::size_t wish) const {
  std::vector<std::size_t> order;
  for (std::size_t g = 0; g < gpus_.size(); ++g) {
    if (wishes_[wish].per_gpu[g]) {
      order.push_back(g);
    }
  }
  const bool replace = options_.policy == ExistingPolicy::kReplace;
  const auto rank = [&](std::size_t g) {
    const FleetGpu& gpu = gpus_[g];
    const bool keeps = replace && has_unclaimed(gpu, g, wish);
    const auto fullness = static_cast<int>(gpu.used_units);
    return std::tuple(keeps ? 0 : 1, distribution_ == Distribution::kPack ? -fullness : fullness,
                      g);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  return order;
}

bool FleetSearch::fits(std::size_t g, std::size_t wish) {
  FleetGpu& gpu = gpus_[g];
  gpu.taken.push_back(wish);
  const std::string key = key_of(gpu);
  auto known = known_.find(key);
  if (known == known_.end()) {
    ++tries_;
    known = known_.emplace(key, search_layout(request_for(gpu)).has_value()).first;
  }
  if (!known->second) {
    gpu.taken.pop_back();
  }
  return known->second;
}

bool FleetSearch::place_from(std::size_t wish) {
  most_placed_ = std::max(most_placed_, wish);
  if (wish == wishes_.size()) {
    return true;
  }
  std::set<std::string> failed;
  for (const std::size_t g : order_for(wish)) {
    FleetGpu& gpu = gpus_[g];
    const std::string before = key_of(gpu);
    if (failed.contains(before) || gave_up()) {
      continue;
    }
    if (fits(g, wish)) {
      gpu.used_units += wishes_[wish].size;
      if (place_from(wish + 1)) {
        return true;
      }
      gpu.used_units -= wishes_[wish].size;
      gpu.taken.pop_back();
    }
    failed.insert(before);
  }
  return false;
}

unsigned least_units(const Wish& wish, const LayoutSpace& space) {
  unsigned units = space.units();
  for (const std::size_t profile : wish.profiles) {
    for (const gpu::Placement& placement : space.profile(profile).placements) {
      units = std::min(units, placement.size);
    }
  }
  return units;
}

// Every GPU's reading of the want, wish by wish. A profile that no GPU has is an error.
Result<std::vector<FleetWish>> read_wishes(const std::vector<FleetGpu>& gpus, const Want& want) {
  std::vector<FleetWish> wishes;
  for (const WantItem& item : want.items) {
    const std::size_t first = wishes.size();
    std::optional<Error> last;
    for (std::size_t g = 0; g < gpus.size(); ++g) {
      std::vector<std::string> notes;
      auto read = resolve_want(Want{{item}}, gpus[g].space, notes);
      if (!read.ok()) {
        last = read.error();
        continue;
      }
      for (std::size_t i = 0; i < read->size(); ++i) {
        if (first + i >= wishes.size()) {
          wishes.push_back({fmt::format("{}@{}", item.profile.text,
                                        item.start ? static_cast<int>(*item.start) : -1),
                            std::vector<std::optional<Wish>>(gpus.size()), 0});
        }
        wishes[first + i].size =
            std::max(wishes[first + i].size, least_units((*read)[i], gpus[g].space));
        wishes[first + i].per_gpu[g] = std::move((*read)[i]);
      }
    }
    if (wishes.size() == first && last) {
      return *last;
    }
  }
  std::stable_sort(wishes.begin(), wishes.end(), [](const FleetWish& a, const FleetWish& b) {
    return std::tie(b.size, a.text) < std::tie(a.size, b.text);
  });
  return wishes;
}

Result<std::vector<FleetGpu>> read_gpus(const std::vector<gpu::GpuState>& states,
                                        const PlanOptions& options) {
  std::vector<FleetGpu> gpus;
  std::vector<std::string> notes;
  for (const gpu::GpuState& state : states) {
    auto space = space_of(state, notes);
    SEPTET_TRY(space);
    FleetGpu gpu{&state, *std::move(space), existing_of(state, options.assigned), {}, 0, 0};
    if (options.policy == ExistingPolicy::kKeep) {
      for (const ExistingInstance& existing : gpu.existing) {
        gpu.used_units += existing.instance.placement.size;
      }
    }
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

}  // namespace

Result<std::vector<GpuPlan>> plan_fleet(const std::vector<gpu::GpuState>& states, const Want& want,
                                        const PlanOptions& options, Distribution distribution) {
  std::vector<GpuPlan> plans;
  if (distribution == Distribution::kEach) {
    for (const gpu::GpuState& state : states) {
      auto plan = plan_gpu(state, want, options);
      SEPTET_TRY(plan);
      plans.push_back(*std::move(plan));
    }
    return plans;
  }
  auto gpus = read_gpus(states, options);
  SEPTET_TRY(gpus);
  auto wishes = read_wishes(*gpus, want);
  SEPTET_TRY(wishes);
  const std::size_t count = wishes->size();
  FleetSearch search(*std::move(gpus), *std::move(wishes), options, distribution);
  if (!search.place_from(0)) {
    return make_error(
        ErrorKind::kNoCapacity,
        fmt::format("{} GPUs hold at most {} of these {} instances{}", states.size(),
                    search.most_placed(), count,
                    search.gave_up() ? " as far as was searched" : " in this order of sizes"),
        "ask for fewer or smaller ones, or for more GPUs");
  }
  for (const FleetGpu& gpu : search.gpus()) {
    PlanRequest request = search.request_for(gpu);
    auto plan = plan_request(*gpu.state, std::move(request), gpu.space, {});
    SEPTET_TRY(plan);
    plans.push_back(*std::move(plan));
  }
  return plans;
}

}  // namespace septet::partition
