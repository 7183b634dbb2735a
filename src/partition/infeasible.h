// Why a request cannot be satisfied, and what comes nearest to it. Internal to the planner; pure.
#pragma once

#include "partition/planner.h"

namespace septet::partition {

// For a request that search_layout() answered with nothing.
Infeasible explain_infeasible(const PlanRequest& request);

}  // namespace septet::partition
