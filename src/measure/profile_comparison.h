// Which partition size for which model: rows measured on partitions of different profiles compared.
//
// The unit of comparison is the whole GPU: a profile of which seven fit may well beat one that is
// three times as fast alone. What was not measured with the GPU full is scaled up from what was,
// and marked as such. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "measure/chart.h"
#include "measure/verdict.h"

namespace septet::measure {

// What a user asks of every answer.
struct ProfileQuestion {
  std::map<std::string, int> instances{};  // how many partitions of a profile fill the GPU
  std::optional<double> p90_limit_us{};    // the latency objective; none = any latency will do
  std::optional<double> price_per_hour{};  // of the whole GPU
};

struct ProfileResult {
  std::string model;
  std::string profile;
  int instances = 0;          // that fill the GPU; 0 = unknown, then taken as measured
  ResultRow row;              // the level with the highest throughput within the objective
  bool within_limit = true;   // false: no level keeps the objective; row is the fastest one
  double gpu_throughput = 0;  // of a GPU full of this profile
  std::optional<double> gpu_half_width;
  bool scaled_up = false;  // gpu_throughput is instances / replicas times the measured one
  std::optional<double> price_of_million;
};

// One result for every model and profile, models in order of appearance, best profile first; those
// that miss the objective last. Rows without a profile are left out.
std::vector<ProfileResult> compare_profiles(const std::vector<ResultRow>& rows,
                                            const ProfileQuestion& question);

// Whether there is anything to compare: two profiles of one model.
bool has_profiles(const std::vector<ResultRow>& rows);

// A sentence or two for every model.
std::vector<Finding> profile_verdict(const std::vector<ProfileResult>& results,
                                     const ProfileQuestion& question);

// Throughput of a full GPU against p90, a line per profile through its levels of load; for one
// model.
Chart profile_chart(const std::vector<ResultRow>& rows, const std::string& model,
                    const ProfileQuestion& question);

}  // namespace septet::measure
