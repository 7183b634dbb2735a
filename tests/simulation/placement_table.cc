// placement_table: prints the table of docs/measurements/placement.md.
#include <fmt/format.h>

#include "placement_policies.h"

int main() {
  using namespace septet::test;
  const std::array<std::pair<SizeMix, double>, 5> rows = {{{{.4, .25, .2, .1, .05}, .6},
                                                           {{.4, .25, .2, .1, .05}, .8},
                                                           {{.4, .25, .2, .1, .05}, 1.0},
                                                           {{.7, .1, .1, .05, .05}, .8},
                                                           {{.2, .2, .2, .2, .2}, .8}}};
  fmt::print("| size mix 1,2,3,4,7 | load |");
  for (const PlacementPolicy policy : kPlacementPolicies) {
    fmt::print(" {} |", to_string(policy));
  }
  fmt::print("\n|---|---|");
  for (std::size_t i = 0; i < kPlacementPolicies.size(); ++i) {
    fmt::print("---|");
  }
  fmt::print("\n");
  for (const auto& [mix, load] : rows) {
    fmt::print("| {} | {} |", fmt::join(mix, " "), load);
    for (const PlacementPolicy policy : kPlacementPolicies) {
      const Accepted accepted = run_loss_system({.mix = mix, .load = load}, policy);
      fmt::print(" {:.1f}/{:.1f} |", accepted.requests_percent, accepted.slices_percent);
    }
    fmt::print("\n");
  }
  return 0;
}
