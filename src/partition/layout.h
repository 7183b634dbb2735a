// Layout: the partitioning of one GPU that somebody wants, had, or has. Values only.
//
// Instances are told apart by profile and placement, never by the driver's ids: those are reused,
// and MIG UUIDs are new at every creation.
#pragma once

#include <string>
#include <vector>

#include "gpu/types.h"
#include "partition/planner.h"

namespace septet::partition {

struct LayoutInstance {
  gpu::ProfileId profile_id;
  std::string profile;  // its name, for messages and for another driver
  gpu::Placement placement;
  std::vector<unsigned> compute;  // slices of its compute instances, the largest first
  bool same_place(const LayoutInstance& other) const {
    return profile_id == other.profile_id && placement == other.placement;
  }
  bool operator==(const LayoutInstance&) const = default;
};

struct Layout {
  gpu::MigMode mode = gpu::MigMode::kEnabled;
  std::vector<LayoutInstance> instances;  // ascending by start
  bool operator==(const Layout&) const = default;
};

// What a GPU has now.
Layout layout_of(const gpu::GpuState& state);
// What a GPU has after the plan.
Layout layout_after(const Plan& plan);
// "3g.20gb@4 1g.5gb@6", "MIG off" or "no instances"; compute instances shown when not whole:
// "3g.20gb@4(2c 1c)".
std::string to_string(const Layout& layout);

}  // namespace septet::partition
