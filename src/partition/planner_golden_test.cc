// Numbers that plain enumeration of the published placement tables gives, reproduced by the search:
// 298 layouts of an A100 (five base profiles), 19 of them maximal, 14 kinds of maximal layout; from
// each maximal layout to each other kind at least 721 instances must go, clearing all takes 1027.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "partition/planner.h"
#include "partition/planner_testing.h"
#include "partition/profile_choice.h"

namespace septet::partition {
namespace {

using Counts = std::vector<unsigned>;

struct Census {
  std::size_t layouts = 0;
  std::size_t maximal = 0;
  std::size_t multisets = 0;
  std::size_t maximal_multisets = 0;
  bool operator==(const Census&) const = default;
};

void PrintTo(const Census& census, std::ostream* out) {
  *out << census.layouts << " / " << census.maximal << " / " << census.multisets << " / "
       << census.maximal_multisets;
}

// The profiles of a model that pass the filter, as a space.
template <typename Filter>
LayoutSpace part_of(const std::string& model, const Filter& filter) {
  const LayoutSpace whole = space_of(model);
  std::vector<gpu::GpuInstanceProfile> profiles;
  for (const gpu::GpuInstanceProfile& profile : whole.profiles()) {
    if (filter(profile)) {
      profiles.push_back(profile);
    }
  }
  return *LayoutSpace::create(std::move(profiles));
}

// One plain profile of each slice count: 1g, 2g, 3g, 4g, 7g without the double-memory 1g.
LayoutSpace base_of(const std::string& model) {
  std::set<unsigned> seen;
  return part_of(model, [&](const gpu::GpuInstanceProfile& profile) {
    return !is_variant(profile) && seen.insert(profile.slices).second;
  });
}

bool is_maximal(const LayoutSpace& space, const std::vector<PlacedProfile>& layout, UnitMask used) {
  Counts counts(space.profiles().size(), 0);
  for (const PlacedProfile& placed : layout) {
    ++counts[placed.profile];
  }
  for (std::size_t p = 0; p < counts.size(); ++p) {
    if (space.remaining(p, used, counts[p]) > 0) {
      return false;
    }
  }
  return true;
}

Counts counts_of(const LayoutSpace& space, const std::vector<PlacedProfile>& layout) {
  Counts counts(space.profiles().size(), 0);
  for (const PlacedProfile& placed : layout) {
    ++counts[placed.profile];
  }
  return counts;
}

Census census_of(const LayoutSpace& space) {
  Census census;
  std::set<Counts> multisets;
  std::set<Counts> maximal;
  for_each_layout(space, [&](const std::vector<PlacedProfile>& layout, UnitMask used) {
    ++census.layouts;
    multisets.insert(counts_of(space, layout));
    if (is_maximal(space, layout, used)) {
      ++census.maximal;
      maximal.insert(counts_of(space, layout));
    }
  });
  census.multisets = multisets.size();
  census.maximal_multisets = maximal.size();
  return census;
}

TEST(Layouts, AreCountedOnSevenSliceChips) {
  for (const char* model : {"A100-SXM4-40GB", "H100-SXM5-80GB", "H200"}) {
    EXPECT_EQ(census_of(base_of(model)), (Census{298, 19, 38, 14})) << model;
    EXPECT_EQ(census_of(space_of(model)), (Census{2319, 239, 128, 64})) << model;
    const LayoutSpace plain =
        part_of(model, [](const gpu::GpuInstanceProfile& profile) { return !is_variant(profile); });
    EXPECT_EQ(census_of(plain), (Census{723, 78, 78, 38})) << model;
  }
}

TEST(Layouts, AreCountedOnFourSliceChips) {
  EXPECT_EQ(census_of(base_of("A30")), (Census{26, 5, 10, 4}));
  EXPECT_EQ(census_of(space_of("A30")), (Census{84, 21, 22, 9}));
  EXPECT_EQ(census_of(base_of("RTX-PRO-6000")), (Census{26, 5, 10, 4}));
}

// What the planner destroys to get from one layout to exactly another.
std::size_t destroyed_between(const LayoutSpace& space, const std::vector<PlacedProfile>& from,
                              const std::vector<PlacedProfile>& to) {
  PlanRequest request{.space = space};
  for (const PlacedProfile& placed : from) {
    ExistingInstance existing;
    existing.instance.profile_id = space.profile(placed.profile).id;
    existing.instance.placement = {placed.start, space.profile(placed.profile).placements[0].size};
    request.existing.push_back(std::move(existing));
  }
  for (const PlacedProfile& placed : to) {
    request.wishes.push_back({.profiles = {placed.profile}, .start = placed.start});
  }
  return planned(request).destroy.size();
}

TEST(Layouts, TransitionsBetweenMaximalOnesDestroyTheMinimum) {
  const LayoutSpace space = base_of("A100-SXM4-40GB");
  std::map<Counts, std::vector<std::vector<PlacedProfile>>> maximal;
  for_each_layout(space, [&](const std::vector<PlacedProfile>& layout, UnitMask used) {
    if (is_maximal(space, layout, used)) {
      maximal[counts_of(space, layout)].push_back(layout);
    }
  });

  std::size_t pairs = 0;
  std::size_t destroyed = 0;
  std::size_t cleared = 0;
  for (const auto& [from_counts, sources] : maximal) {
    for (const std::vector<PlacedProfile>& from : sources) {
      for (const auto& [to_counts, targets] : maximal) {
        if (to_counts == from_counts) {
          continue;
        }
        std::size_t least = from.size();
        for (const std::vector<PlacedProfile>& to : targets) {
          least = std::min(least, destroyed_between(space, from, to));
        }
        ++pairs;
        destroyed += least;
        cleared += from.size();
      }
    }
  }

  EXPECT_EQ(pairs, 247U);
  EXPECT_EQ(destroyed, 721U);
  EXPECT_EQ(cleared, 1027U);
}

// Every multiset that fits somewhere is placed, in whatever order it is asked for.
TEST(Layouts, EveryFeasibleMultisetIsPlacedInEveryOrder) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  std::set<Counts> multisets;
  for_each_layout(space, [&](const std::vector<PlacedProfile>& layout, UnitMask) {
    multisets.insert(counts_of(space, layout));
  });
  std::size_t orders = 0;
  for (const Counts& counts : multisets) {
    std::vector<std::size_t> order;
    for (std::size_t p = 0; p < counts.size(); ++p) {
      order.insert(order.end(), counts[p], p);
    }
    std::set<std::string> layouts;
    do {
      PlanRequest request{.space = space};
      for (const std::size_t p : order) {
        request.wishes.push_back({.profiles = {p}});
      }
      layouts.insert(layout_text(planned(request)));
      ++orders;
    } while (std::next_permutation(order.begin(), order.end()));
    EXPECT_EQ(layouts.size(), 1U);
  }

  EXPECT_EQ(multisets.size(), 128U);
  EXPECT_EQ(orders, 1323U);  // 1322 of the non-empty ones, and the empty one
}

}  // namespace
}  // namespace septet::partition
