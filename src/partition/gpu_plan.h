// A plan for an observed GPU: the planner's request made from what the driver says.
//
// Pure; any thread. An instance with a process in it is busy, one that somebody has been given is
// idle, any other is free.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/types.h"
#include "partition/layout.h"
#include "partition/planner.h"
#include "partition/want.h"

namespace septet::partition {

struct PlanOptions {
  ExistingPolicy policy = ExistingPolicy::kReplace;
  // With kReplace: what exists is wished for too, but idle instances may move to make room.
  bool keep_by_moving = false;
  bool may_drain = false;
  std::vector<gpu::GpuInstanceId> assigned{};  // given to somebody: idle instead of free
};

struct GpuPlan {
  Layout before;
  Layout after;
  Plan plan;
  LayoutSpace space;
  std::vector<std::string> notes;  // names read differently, tables used instead of the driver
};

// The space of a GPU's profiles. With MIG off some drivers name none: then the model's table is
// used and a note says so. kPrecondition when the GPU cannot be partitioned.
Result<LayoutSpace> space_of(const gpu::GpuState& state, std::vector<std::string>& notes);

// The instances as the planner sees them.
std::vector<ExistingInstance> existing_of(const gpu::GpuState& state,
                                          const std::vector<gpu::GpuInstanceId>& assigned);

// Runs the planner; infeasible becomes to_error().
Result<GpuPlan> plan_request(const gpu::GpuState& state, PlanRequest request, LayoutSpace space,
                             std::vector<std::string> notes);

// The exit codes of the errors: 6 unknown profile, 3 blocked by what is busy or must stay, 8 does
// not fit; the hint names the nearest alternatives.
Result<GpuPlan> plan_gpu(const gpu::GpuState& state, const Want& want, const PlanOptions& options);

// The plan for exactly this layout (restore, assert, mig-parted files): placements are fixed.
Result<GpuPlan> plan_layout(const gpu::GpuState& state, const Layout& wanted,
                            const PlanOptions& options);

// Moves idle instances so that the largest future requests fit; busy ones stay where they are. The
// plan changes nothing when no move helps.
Result<GpuPlan> plan_defragment(const gpu::GpuState& state, const PlanOptions& options);

Error to_error(const Infeasible& infeasible, const gpu::GpuState& state);

}  // namespace septet::partition
