// Metrics in Prometheus' text form, under Triton's names (inference protocol, 1.8) and our own.
//
// Pure: snapshots in, text out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "serve/statistics.h"

namespace septet::serve {

struct ModelSnapshot {
  std::string model{};
  std::string version{};
  std::map<std::string, std::string> tags{};  // metric_tags of the configuration
  int instances = 1;
  ModelStatistics statistics{};
};

struct HostSnapshot {
  std::uint64_t memory_total_bytes = 0;
  std::uint64_t memory_used_bytes = 0;
  std::size_t connections = 0;
};

std::string write_metrics(const std::vector<ModelSnapshot>& models, const HostSnapshot& host);

}  // namespace septet::serve
