// What a server's Prometheus page says about its GPUs, at one moment and over a time.
//
// Triton's names (nv_gpu_utilization, nv_gpu_power_usage, nv_gpu_memory_used_bytes,
// nv_gpu_memory_total_bytes), each by the label gpu_uuid. Value types.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace septet::measure {

// One page; a GPU is absent from what the page does not say about it.
struct GpuReading {
  std::map<std::string, double> utilization;  // 0 to 1
  std::map<std::string, double> power_watts;
  std::map<std::string, std::uint64_t> memory_used_bytes;
  std::map<std::string, std::uint64_t> memory_total_bytes;
};

// Lines that are no such metric are passed over, a page of another kind gives an empty reading.
GpuReading parse_gpu_metrics(std::string_view page);
// The names of the metrics that no GPU has.
std::vector<std::string> missing_gpu_metrics(const GpuReading& reading);

// Readings put together: means of utilization and power, the most memory used.
class GpuFigures {
 public:
  void add(const GpuReading& reading);
  void merge(const GpuFigures& other);

  // Every GPU that any reading said anything about.
  std::set<std::string> names() const;
  std::map<std::string, double> utilization() const { return means(utilization_); }
  std::map<std::string, double> power_watts() const { return means(power_watts_); }
  const std::map<std::string, std::uint64_t>& most_memory_bytes() const { return most_bytes_; }
  const std::map<std::string, std::uint64_t>& total_memory_bytes() const { return total_bytes_; }

 private:
  struct Sum {
    double total = 0;
    std::uint64_t count = 0;
  };
  using Sums = std::map<std::string, Sum>;
  static std::map<std::string, double> means(const Sums& sums);

  Sums utilization_;
  Sums power_watts_;
  std::map<std::string, std::uint64_t> most_bytes_;
  std::map<std::string, std::uint64_t> total_bytes_;
};

}  // namespace septet::measure
