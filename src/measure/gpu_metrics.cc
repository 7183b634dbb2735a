#include "measure/gpu_metrics.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace septet::measure {

namespace {

constexpr std::string_view kUtilization = "nv_gpu_utilization";
constexpr std::string_view kPower = "nv_gpu_power_usage";
constexpr std::string_view kMemoryUsed = "nv_gpu_memory_used_bytes";
constexpr std::string_view kMemoryTotal = "nv_gpu_memory_total_bytes";

struct Sample {
  std::string_view metric;
  std::string gpu;
  double value = 0;
};

// NAME{...,gpu_uuid="UUID",...} VALUE [TIME]
std::optional<Sample> read_sample(std::string_view line) {
  const std::size_t open = line.find('{');
  const std::size_t close = line.find('}', open);
  if (line.starts_with('#') || close == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view labels = line.substr(open + 1, close - open - 1);
  constexpr std::string_view kLabel = "gpu_uuid=\"";
  const std::size_t label = labels.find(kLabel);
  if (label == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view uuid = labels.substr(label + kLabel.size());
  const std::string_view rest = trim(line.substr(close + 1));
  const std::optional<double> value = parse_double(rest.substr(0, rest.find(' ')));
  if (!value || *value < 0) {
    return std::nullopt;
  }
  return Sample{trim(line.substr(0, open)), std::string(uuid.substr(0, uuid.find('"'))), *value};
}

void add_to(std::map<std::string, std::uint64_t>& most,
            const std::map<std::string, std::uint64_t>& values) {
  for (const auto& [gpu, value] : values) {
    std::uint64_t& known = most[gpu];
    known = std::max(known, value);
  }
}

}  // namespace

GpuReading parse_gpu_metrics(std::string_view page) {
  GpuReading reading;
  for (const std::string_view line : split(page, '\n')) {
    const std::optional<Sample> sample = read_sample(line);
    if (!sample) {
      continue;
    }
    if (sample->metric == kUtilization) {
      reading.utilization[sample->gpu] = sample->value;
    } else if (sample->metric == kPower) {
      reading.power_watts[sample->gpu] = sample->value;
    } else if (sample->metric == kMemoryUsed) {
      reading.memory_used_bytes[sample->gpu] = static_cast<std::uint64_t>(sample->value);
    } else if (sample->metric == kMemoryTotal) {
      reading.memory_total_bytes[sample->gpu] = static_cast<std::uint64_t>(sample->value);
    }
  }
  return reading;
}

std::vector<std::string> missing_gpu_metrics(const GpuReading& reading) {
  std::vector<std::string> missing;
  const auto note = [&](bool absent, std::string_view name) {
    if (absent) {
      missing.emplace_back(name);
    }
  };
  note(reading.utilization.empty(), kUtilization);
  note(reading.power_watts.empty(), kPower);
  note(reading.memory_used_bytes.empty(), kMemoryUsed);
  note(reading.memory_total_bytes.empty(), kMemoryTotal);
  return missing;
}

void GpuFigures::add(const GpuReading& reading) {
  const auto add_all = [](Sums& sums, const std::map<std::string, double>& values) {
    for (const auto& [gpu, value] : values) {
      sums[gpu].total += value;
      ++sums[gpu].count;
    }
  };
  add_all(utilization_, reading.utilization);
  add_all(power_watts_, reading.power_watts);
  add_to(most_bytes_, reading.memory_used_bytes);
  add_to(total_bytes_, reading.memory_total_bytes);
}

void GpuFigures::merge(const GpuFigures& other) {
  const auto add_all = [](Sums& sums, const Sums& more) {
    for (const auto& [gpu, sum] : more) {
      sums[gpu].total += sum.total;
      sums[gpu].count += sum.count;
    }
  };
  add_all(utilization_, other.utilization_);
  add_all(power_watts_, other.power_watts_);
  add_to(most_bytes_, other.most_bytes_);
  add_to(total_bytes_, other.total_bytes_);
}

std::set<std::string> GpuFigures::names() const {
  std::set<std::string> names;
  const auto add_keys = [&names](const auto& values) {
    for (const auto& [gpu, value] : values) {
      names.insert(gpu);
    }
  };
  add_keys(utilization_);
  add_keys(power_watts_);
  add_keys(most_bytes_);
  add_keys(total_bytes_);
  return names;
}

std::map<std::string, double> GpuFigures::means(const Sums& sums) {
  std::map<std::string, double> result;
  for (const auto& [gpu, sum] : sums) {
    result[gpu] = sum.total / static_cast<double>(sum.count);
  }
  return result;
}

}  // namespace septet::measure
