// The planner against brute force over every layout, on every GPU model that is known: random
// existing layouts, random occupancy, random wants.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <tuple>

#include "base/prng.h"
#include "partition/layout_search.h"
#include "partition/planner.h"
#include "partition/planner_testing.h"

namespace septet::partition {
namespace {

constexpr int kRounds = 120;

struct Layout {
  std::vector<PlacedProfile> placed;
  UnitMask used = 0;
};

std::vector<Layout> all_layouts(const LayoutSpace& space) {
  std::vector<Layout> layouts;
  for_each_layout(space, [&](const std::vector<PlacedProfile>& layout, UnitMask used) {
    layouts.push_back({layout, used});
  });
  return layouts;
}

// cost, minus future capacity: what the planner promises to minimise first.
using Value = std::pair<std::int64_t, std::int64_t>;

const ExistingInstance* standing_at(const PlanRequest& request, const PlacedProfile& placed) {
  for (const ExistingInstance& existing : request.existing) {
    if (existing.instance.profile_id == request.space.profile(placed.profile).id &&
        existing.instance.placement.start == placed.start) {
      return &existing;
    }
  }
  return nullptr;
}

// Whether the wishes can be matched one to one with the layout's entries (there are few).
bool satisfies(const PlanRequest& request, std::vector<PlacedProfile> left, std::size_t next) {
  if (next == request.wishes.size()) {
    return left.empty();
  }
  const Wish& wish = request.wishes[next];
  for (std::size_t i = 0; i < left.size(); ++i) {
    const bool fits = std::find(wish.profiles.begin(), wish.profiles.end(), left[i].profile) !=
                          wish.profiles.end() &&
                      (!wish.start || *wish.start == left[i].start);
    if (fits) {
      std::vector<PlacedProfile> rest = left;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      if (satisfies(request, std::move(rest), next + 1)) {
        return true;
      }
    }
  }
  return false;
}

// The value of a layout for this request, or nothing when it is not allowed.
std::optional<Value> value_of(const PlanRequest& request, const Layout& layout) {
  if (layout.placed.size() != request.wishes.size() || !satisfies(request, layout.placed, 0)) {
    return std::nullopt;
  }
  std::int64_t cost = 0;
  for (const ExistingInstance& existing : request.existing) {
    const bool stays = std::any_of(
        layout.placed.begin(), layout.placed.end(),
        [&](const PlacedProfile& placed) { return standing_at(request, placed) == &existing; });
    if (!stays && existing.occupancy == Occupancy::kBusy) {
      return std::nullopt;
    }
    cost += stays ? 0 : loss_cost(existing, false);
  }
  return Value{cost, -static_cast<std::int64_t>(request.space.future_capacity(layout.used))};
}

std::vector<ExistingInstance> random_existing(const LayoutSpace& space, const Layout& layout,
                                              Prng& prng) {
  std::vector<ExistingInstance> result;
  for (const PlacedProfile& placed : layout.placed) {
    const gpu::GpuInstanceProfile& profile = space.profile(placed.profile);
    ExistingInstance existing;
    existing.instance.id = gpu::GpuInstanceId(static_cast<unsigned>(result.size()));
    existing.instance.profile_id = profile.id;
    existing.instance.placement = {placed.start, profile.placements.front().size};
    gpu::ComputeInstance compute;
    compute.placement = {0, profile.slices};
    existing.instance.compute_instances.push_back(compute);
    const std::uint64_t draw = prng.below(10);
    existing.occupancy = draw < 2   ? Occupancy::kBusy
                         : draw < 5 ? Occupancy::kIdle
                                    : Occupancy::kFree;
    result.push_back(std::move(existing));
  }
  return result;
}

// A want near to some layout, so that about half of them are feasible; some flexible, some placed.
std::vector<Wish> random_wishes(const LayoutSpace& space, const Layout& layout, Prng& prng) {
  std::vector<Wish> wishes;
  for (const PlacedProfile& placed : layout.placed) {
    Wish wish{.profiles = {placed.profile}};
    if (prng.below(8) == 0) {
      wish.profiles = {prng.below(space.profiles().size())};
    } else if (prng.below(6) == 0) {
      wish.start = placed.start;
    }
    if (prng.below(5) == 0) {
      const std::size_t other = prng.below(space.profiles().size());
      if (other != wish.profiles.front()) {
        wish.profiles.push_back(other);
      }
    }
    if (wishes.size() < 7) {
      wishes.push_back(std::move(wish));
    }
  }
  return wishes;
}

Value value_of_plan(const PlanRequest& request, const Plan& plan) {
  std::int64_t cost = 0;
  for (const DestroyedInstance& destroyed : plan.destroy) {
    EXPECT_NE(destroyed.occupancy, Occupancy::kBusy);
    ExistingInstance lost;
    lost.occupancy = destroyed.occupancy;
    cost += loss_cost(lost, false);
  }
  UnitMask used = 0;
  const auto take = [&](const gpu::Placement& placement) {
    const UnitMask mask = LayoutSpace::mask_of(placement);
    EXPECT_EQ(mask & used, 0U) << "overlap";
    used |= mask;
  };
  for (const KeptInstance& kept : plan.keep) {
    take(kept.instance.placement);
  }
  for (const CreatedInstance& created : plan.create) {
    take(created.placement);
  }
  return {cost, -static_cast<std::int64_t>(request.space.future_capacity(used))};
}

void check_against_brute_force(const LayoutSpace& space, std::uint64_t seed) {
  Prng prng(seed);
  const std::vector<Layout> layouts = all_layouts(space);
  int feasible = 0;
  for (int round = 0; round < kRounds; ++round) {
    PlanRequest request{.space = space};
    request.existing = random_existing(space, layouts[prng.below(layouts.size())], prng);
    request.wishes = random_wishes(space, layouts[prng.below(layouts.size())], prng);

    std::optional<Value> best;
    for (const Layout& layout : layouts) {
      const auto value = value_of(request, layout);
      if (value && (!best || *value < *best)) {
        best = value;
      }
    }
    const PlanOutcome outcome = make_plan(request);

    ASSERT_EQ(std::holds_alternative<Plan>(outcome), best.has_value()) << "round " << round;
    if (best) {
      ++feasible;
      ASSERT_EQ(value_of_plan(request, std::get<Plan>(outcome)), *best) << "round " << round;
    }
  }
  EXPECT_GT(feasible, kRounds / 10);
  EXPECT_LT(feasible, kRounds);
}

class PlannerOnEveryModel : public testing::TestWithParam<std::string> {};

TEST_P(PlannerOnEveryModel, EqualsBruteForce) {
  check_against_brute_force(space_of(GetParam()), 1);
}

std::vector<std::string> partitionable_models() {
  std::vector<std::string> keys;
  for (const gpu::GpuModel& model : gpu::gpu_models()) {
    if (!model.profiles.empty()) {
      keys.push_back(model.key);
    }
  }
  return keys;
}

std::string test_name(const testing::TestParamInfo<std::string>& model) {
  std::string name = model.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, PlannerOnEveryModel, testing::ValuesIn(partitionable_models()),
                         test_name);

// Not a GPU that exists: sixteen units, to show that nothing here counts on eight.
TEST(PlannerOnAnyChip, EqualsBruteForceOnSixteenUnits) {
  std::vector<gpu::GpuInstanceProfile> profiles(3);
  const auto fill = [&](std::size_t i, unsigned slices, unsigned size, unsigned step) {
    profiles[i].id = gpu::ProfileId(static_cast<unsigned>(i));
    profiles[i].name = fmt::format("{}g.{}gb", slices, slices * 10);
    profiles[i].slices = slices;
    for (unsigned start = 0; start + size <= 16; start += step) {
      profiles[i].placements.push_back({start, size});
    }
    profiles[i].max_instances = 16 / size;
  };
  fill(0, 2, 3, 2);
  fill(1, 5, 6, 5);
  fill(2, 12, 16, 1);

  check_against_brute_force(*LayoutSpace::create(profiles), 7);
}

}  // namespace
}  // namespace septet::partition
