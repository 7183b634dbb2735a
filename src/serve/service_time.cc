#include "serve/service_time.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "base/text.h"

namespace septet::serve {

namespace {

constexpr std::string_view kOwnHeader = "model,slice,batch,latency_us";
constexpr std::string_view kProfileHeader =
    "Mig instance,Batch size,Workload Number,Throughput,Latency";

struct Row {
  std::string slice{};
  int batch = 0;
  Duration time{};
  bool wanted = true;
};

// Nothing when a cell cannot be read.
std::optional<Row> own_row(const std::vector<std::string_view>& cells, std::string_view model) {
  if (cells.size() != 4) {
    return std::nullopt;
  }
  const auto batch = parse_int(cells[2]);
  const auto latency_us = parse_double(cells[3]);
  if (!batch || *batch < 1 || *batch > 1 << 20 || !latency_us || *latency_us <= 0) {
    return std::nullopt;
  }
  return Row{std::string(cells[1]), static_cast<int>(*batch), from_seconds(*latency_us * 1e-6),
             cells[0] == model};
}

std::optional<Row> profile_row(const std::vector<std::string_view>& cells) {
  if (cells.size() != 5) {
    return std::nullopt;
  }
  const auto gpcs = parse_int(cells[0]);
  const auto batch = parse_int(cells[1]);
  const auto processes = parse_int(cells[2]);
  const auto throughput = parse_double(cells[3]);
  if (!gpcs || !batch || *batch < 1 || *batch > 1 << 20 || !processes || !throughput) {
    return std::nullopt;
  }
  // One process alone is what a replica is; its latency is rounded, batch / throughput is not.
  Row row{fmt::format("{}g", *gpcs), static_cast<int>(*batch), {}, false};
  if (*processes == 1 && *throughput > 0) {
    row.time = from_seconds(static_cast<double>(*batch) / *throughput);
    row.wanted = true;
  }
  return row;
}

}  // namespace

Result<ServiceTimes> ServiceTimes::parse(std::string_view csv, std::string_view model) {
  ServiceTimes times;
  bool profile = false;
  int number = 0;
  for (std::string_view line : split(csv, '\n')) {
    ++number;
    line = trim(line);
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    if (line == kOwnHeader || line == kProfileHeader) {
      profile = line == kProfileHeader;
      continue;
    }
    std::vector<std::string_view> cells = split(line, ',');
    for (std::string_view& cell : cells) {
      cell = trim(cell);
    }
    const std::optional<Row> row = profile ? profile_row(cells) : own_row(cells, model);
    if (!row) {
      return make_error(ErrorKind::kUsage,
                        fmt::format("line {}: cannot read '{}' as a service time", number, line),
                        fmt::format("write the columns {}", profile ? kProfileHeader : kOwnHeader));
    }
    if (row->wanted) {
      times.by_slice_[row->slice][row->batch] = row->time;
    }
  }
  if (times.by_slice_.empty()) {
    return make_error(ErrorKind::kNotFound, fmt::format("no service time of model '{}'", model));
  }
  return times;
}

Result<Duration> ServiceTimes::time(std::string_view slice, int batch) const {
  auto found = by_slice_.find(std::string(slice));
  if (found == by_slice_.end()) {
    found = by_slice_.find(std::string(slice.substr(0, slice.find('.'))));
  }
  if (found == by_slice_.end()) {
    std::vector<std::string> known;
    for (const auto& [name, row] : by_slice_) {
      known.push_back(name);
    }
    return make_error(ErrorKind::kNotFound, fmt::format("no service time on slice '{}'", slice),
                      fmt::format("measured are {}", join_words(known)));
  }
  const std::map<int, Duration>& by_batch = found->second;
  const auto above = by_batch.lower_bound(batch);
  const auto scaled = [](Duration time, double factor) {
    return from_seconds(to_seconds(time) * factor);
  };
  if (above == by_batch.end()) {
    const auto& [largest, time] = *by_batch.rbegin();
    return scaled(time, static_cast<double>(batch) / largest);
  }
  if (above->first == batch || above == by_batch.begin()) {
    return above->second;
  }
  const auto below = std::prev(above);
  const double share =
      static_cast<double>(batch - below->first) / static_cast<double>(above->first - below->first);
  return below->second + scaled(above->second - below->second, share);
}

Duration vary(Duration time, const TimeVariation& variation, Prng& prng) {
  double seconds_taken = to_seconds(time);
  if (variation.jitter > 0) {
    // Log-normal with mean 1: never negative, a tail to the right (Box-Muller).
    const double radius = std::sqrt(-2 * std::log(1 - prng.uniform()));
    const double normal = radius * std::cos(2 * std::numbers::pi * prng.uniform());
    const double sigma = std::sqrt(std::log(1 + variation.jitter * variation.jitter));
    seconds_taken *= std::exp(sigma * normal - sigma * sigma / 2);
  }
  const bool stalls = variation.stall_chance > 0 && prng.chance(variation.stall_chance);
  return from_seconds(seconds_taken) + (stalls ? variation.stall : Duration::zero());
}

}  // namespace septet::serve
