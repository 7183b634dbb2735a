// Which MIG profile each job takes, and whether all of them fit one GPU at once.
//
// Pure; used by the advisor only. Exact: searches all placements, which is small (at most 12
// units).
#pragma once

#include <vector>

#include "partition/advisor.h"

namespace septet::partition {

struct ProfileChoice {
  std::vector<const gpu::GpuInstanceProfile*> per_job;  // empty when some job fits no profile
  std::vector<PlannedInstance> instances;               // empty when they do not fit together
  bool placed() const { return !instances.empty(); }
};

// The smallest profile per job by memory and multiprocessors; where those do not fit together, by
// memory only.
ProfileChoice choose_profiles(const Node& node, const std::vector<Job>& jobs);

// MIG with MPS inside: the smallest profile that takes tenants_each > 1 of the jobs.
struct HybridChoice {
  const gpu::GpuInstanceProfile* profile = nullptr;  // null when there is none
  unsigned tenants_each = 0;
  std::vector<PlannedInstance> instances;
};

HybridChoice choose_hybrid(const Node& node, const std::vector<Job>& jobs);

}  // namespace septet::partition
