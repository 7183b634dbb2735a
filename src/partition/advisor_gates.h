// The hard gates of the advisor: the codes of every reason why a technique cannot serve a demand.
//
// Pure; used by the advisor only. Case holds what several gates derive from node and demand.
#pragma once

#include <string>
#include <vector>

#include "partition/advisor_placement.h"

namespace septet::partition {

struct Case {
  const Node& node;
  const Demand& demand;
  double active_tenants;  // max(1, sum of duties)
  double load;            // busy multiprocessors over those there are
  std::int64_t memory_sum_mib;
  std::int64_t memory_max_mib;
  bool fits_together;  // every job's memory and context at once
  ProfileChoice mig;
  HybridChoice hybrid;

  Case(const Node& the_node, const Demand& the_demand);
  double count() const { return static_cast<double>(demand.jobs.size()); }
};

// Empty when the technique may be used. latency_factor: the model's, for the target.
std::vector<std::string> failed_gates(const Case& the_case, Technique technique,
                                      double latency_factor);

// Clients that one MPS server of this driver takes.
unsigned mps_client_limit(unsigned driver_major);

}  // namespace septet::partition
