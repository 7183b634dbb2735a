// The planner of one GPU: from what exists and what is wanted, what to keep, destroy and create.
//
//   exists     |1|1|1|1|1|1|1|-|                 wanted: 1g 1g 2g 3g
//   plan       |1|1| 2g  |  3g   |               keep 2, destroy 5, create 2
//
// Exact: among all layouts that satisfy the wishes it takes, in this order, the one that touches no
// busy instance, destroys the least (idle ones weigh more than unassigned ones), leaves the largest
// future capacity, gives the most compute slices for the same room, and comes first in a fixed
// order. The order of the wishes does not matter. Pure: no driver, no clock; any thread.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gpu/types.h"
#include "partition/compute_layout.h"
#include "partition/layout_space.h"
#include "partition/want.h"

namespace septet::partition {

// How much it would hurt to lose an instance.
enum class Occupancy {
  kFree,  // nobody has it
  kIdle,  // somebody has it, nothing runs
  kBusy,  // a process runs in it
};

struct ExistingInstance {
  gpu::GpuInstance instance;
  Occupancy occupancy = Occupancy::kFree;
  std::vector<gpu::ComputeInstanceId> busy_compute;  // empty while busy = all of them
  std::string holder;                                // "python (pid 4242)"; for messages
};

// One GPU instance asked for.
struct Wish {
  std::vector<std::size_t> profiles;  // acceptable ones, indexes into the space
  std::optional<unsigned> start{};
  std::vector<unsigned>
      compute{};       // slices of its compute instances; empty = one that is the whole
  std::string text{};  // as typed
};

enum class ExistingPolicy {
  kReplace,  // the wishes are the whole layout: what is not wished for goes
  kKeep,     // what exists stays where it is, the wishes come in addition
};

enum class Objective {
  kLeastChange,      // destroy the least, then leave the largest future capacity
  kLargestCapacity,  // the other way round: for defragmenting
};

struct PlanRequest {
  const LayoutSpace& space;
  std::vector<ExistingInstance> existing{};
  std::vector<Wish> wishes{};
  ExistingPolicy policy = ExistingPolicy::kReplace;
  bool may_drain = false;  // busy instances may be destroyed too, as the last resort
  Objective objective = Objective::kLeastChange;
};

struct KeptInstance {
  gpu::GpuInstance instance;
  std::string profile;
  Occupancy occupancy = Occupancy::kFree;
  ComputeChange compute;  // what changes inside
};

struct DestroyedInstance {
  gpu::GpuInstance instance;
  std::string profile;
  Occupancy occupancy = Occupancy::kFree;
  std::string reason;
};

struct CreatedInstance {
  gpu::ProfileId profile_id;
  std::string profile;
  gpu::Placement placement;
  std::vector<unsigned> compute;  // slices, the largest first
};

struct Plan {
  std::vector<KeptInstance> keep;  // by placement, as all three
  std::vector<DestroyedInstance> destroy;
  std::vector<CreatedInstance> create;
  unsigned unused_units = 0;   // of space.units()
  unsigned unused_slices = 0;  // of space.compute_slices()
  // What could still be placed: for every profile of the space how many more of it alone.
  std::vector<unsigned> remaining;

  bool changes_nothing() const;
};

// Why no plan exists.
enum class Constraint {
  kIllegalStart,       // a profile cannot start there
  kTooManyOfProfile,   // the driver's limit for one profile
  kComputeInstances,   // the compute instances do not fit in their GPU instance
  kComputeSlices,      // more slices than the GPU has
  kUnits,              // more placement units (memory) than the GPU has
  kPlacementRules,     // enough of both, but the legal starts collide
  kBusyInstances,      // it fits, but not beside what is busy
  kExistingInstances,  // it fits, but not beside what was to be kept
};
const char* to_string(Constraint constraint);

struct Infeasible {
  Constraint constraint = Constraint::kPlacementRules;
  std::string message;                    // which constraint binds, with numbers
  std::string hint;                       // what to do, besides the alternatives
  std::vector<std::string> alternatives;  // nearest wants that are feasible, the nearest first
};

using PlanOutcome = std::variant<Plan, Infeasible>;

PlanOutcome make_plan(const PlanRequest& request);

// The wishes of a want on this GPU; kNotFound for an unknown profile. Compute instances smaller
// than their GPU instance (1c.3g.20gb:5) are packed into as few GPU instances as hold them.
// Notes about names read differently are appended.
Result<std::vector<Wish>> resolve_want(const Want& want, const LayoutSpace& space,
                                       std::vector<std::string>& notes);

}  // namespace septet::partition
