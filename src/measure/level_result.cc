#include "measure/level_result.h"

#include <fmt/format.h>

namespace septet::measure {

namespace {

constexpr std::array<const char*, kFailureKinds> kNames = {
    "connect", "reset", "timeout", "protocol", "refused", "rejected", "server", "wrong"};

std::uint64_t minus(std::uint64_t later, std::uint64_t earlier) {
  return later > earlier ? later - earlier : 0;
}

ServerDuration minus(const ServerDuration& later, const ServerDuration& earlier) {
  return {minus(later.count, earlier.count), minus(later.ns, earlier.ns)};
}

void add(ServerDuration& to, const ServerDuration& from) {
  to.count += from.count;
  to.ns += from.ns;
}

}  // namespace

const char* to_string(FailureKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::string FailureCounts::text() const {
  std::string text;
  for (std::size_t i = 0; i < kFailureKinds; ++i) {
    if (counts_[i] > 0) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts_[i], kNames[i]);
    }
  }
  return text.empty() ? "none" : text;
}

std::uint64_t ServerStatistics::overhead_ns() const {
  return minus(success.mean_ns(), queue.mean_ns() + compute_input.mean_ns() +
                                      compute_infer.mean_ns() + compute_output.mean_ns() +
                                      cache_hit.mean_ns() + cache_miss.mean_ns());
}

ServerStatistics ServerStatistics::difference(const ServerStatistics& later,
                                              const ServerStatistics& earlier) {
  ServerStatistics result;
  result.inference_count = minus(later.inference_count, earlier.inference_count);
  result.execution_count = minus(later.execution_count, earlier.execution_count);
  result.success = minus(later.success, earlier.success);
  result.queue = minus(later.queue, earlier.queue);
  result.compute_input = minus(later.compute_input, earlier.compute_input);
  result.compute_infer = minus(later.compute_infer, earlier.compute_infer);
  result.compute_output = minus(later.compute_output, earlier.compute_output);
  result.cache_hit = minus(later.cache_hit, earlier.cache_hit);
  result.cache_miss = minus(later.cache_miss, earlier.cache_miss);
  return result;
}

void ServerStatistics::merge(const ServerStatistics& other) {
  inference_count += other.inference_count;
  execution_count += other.execution_count;
  add(success, other.success);
  add(queue, other.queue);
  add(compute_input, other.compute_input);
  add(compute_infer, other.compute_infer);
  add(compute_output, other.compute_output);
  add(cache_hit, other.cache_hit);
  add(cache_miss, other.cache_miss);
}

}  // namespace septet::measure
