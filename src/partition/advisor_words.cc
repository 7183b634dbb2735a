#include "partition/advisor_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"

namespace septet::partition {

namespace {

struct CodeWords {
  std::string_view code;
  const char* words;
};

constexpr CodeWords kCodes[] = {
    {"kind.no", "does not suit this kind of work"},
    {"vm.only_vgpu", "tenants are virtual machines, which only a vGPU serves"},
    {"vgpu.no_vm_asked", "serves virtual machines, and none was asked for"},
    {"vgpu.no_host", "the vGPU host driver is not installed"},
    {"vgpu.need_mig_backed", "strangers with a latency target need a MIG-backed vGPU"},
    {"mig.not_capable", "this GPU has no MIG"},
    {"mig.mode_locked", "MIG mode is off and may not be changed now"},
    {"mig.no_placement", "no set of MIG instances holds all tenants at once"},
    {"hybrid.not_needed", "MIG alone holds all tenants"},
    {"mps.trust", "a fault of one tenant ends all, which needs a team that accepts it"},
    {"mps.no_binary", "nvidia-cuda-mps-control is not installed"},
    {"mps.cc", "needs compute capability 7.0"},
    {"mps.clients", "more tenants than one MPS server takes"},
    {"mps.uid", "before driver 615 an MPS server serves one user at a time"},
    {"mps.mig_on", "MIG mode is on: MPS runs inside a MIG instance then"},
    {"mps_static.driver", "static partitions need driver 590"},
    {"mps_static.cc", "static partitions need compute capability 8.0"},
    {"mps_static.chunks", "the tenants need more chunks of SMs than the GPU has"},
    {"mps_v3.driver", "MPS v3 needs driver 615"},
    {"mps_v3.dmem", "needs control groups v2 with the dmem controller"},
    {"mps_v3.mig", "memory limits of MPS v3 do not work under MIG"},
    {"mem.sum", "the tenants' memory does not fit the GPU at once"},
    {"mem.one", "the largest tenant does not fit the GPU"},
    {"ts.trust", "strangers would share one memory without a limit"},
    {"ts.mig_on", "MIG mode is on: whole-GPU time-slicing does not apply"},
    {"shim.not_allowed", "no library may be preloaded into the tenants"},
    {"swap.kind", "turns of seconds suit interactive and low-priority work only"},
    {"swap.not_needed", "all tenants fit without swapping"},
    {"swap.duty", "the tenants are busy too much to take turns"},
    {"swap.ram", "host memory does not hold the tenants"},
    {"swap.not_allowed", "no library may be preloaded into the tenants"},
    {"streams.processes", "the tenants are not models of one process"},
    {"green.cuda", "green contexts need CUDA 12.4"},
    {"lat.slice", "waiting for the other tenants' time slices alone misses the target"},
    {"lat.miss", "the expected latency misses the target"},
};

std::string instances_text(const std::vector<PlannedInstance>& instances) {
  std::string text;
  for (const PlannedInstance& instance : instances) {
    text +=
        fmt::format("{}{}@{}", text.empty() ? "" : " ", instance.profile, instance.placement.start);
  }
  return text;
}

// Each tenant's own need plus an equal part of what is left.
std::vector<std::int64_t> memory_limits(const Case& the_case) {
  const auto count = static_cast<std::int64_t>(the_case.demand.jobs.size());
  const std::int64_t spare = std::max<std::int64_t>(
      0, (the_case.node.memory_mib - the_case.memory_sum_mib - count * the_case.node.context_mib) /
             count);
  std::vector<std::int64_t> limits;
  for (const Job& job : the_case.demand.jobs) {
    limits.push_back(job.memory_mib + spare);
  }
  return limits;
}

std::string limits_text(const std::vector<std::int64_t>& limits) {
  const auto [low, high] = std::minmax_element(limits.begin(), limits.end());
  return *low == *high ? fmt::format("{} MiB each", *low) : fmt::format("{}..{} MiB", *low, *high);
}

SliceLength slice_length(WorkKind kind) {
  switch (kind) {
    case WorkKind::kLatency:
    case WorkKind::kInteractive:
      return SliceLength::kShort;
    case WorkKind::kPerformance:
      return SliceLength::kDefault;
    case WorkKind::kLow:
      return SliceLength::kLong;
  }
  return SliceLength::kDefault;
}

SharingPlan mps_plan(const Case& the_case, Technique technique) {
  SharingPlan plan;
  const auto count = static_cast<unsigned>(the_case.demand.jobs.size());
  plan.memory_limits_mib = memory_limits(the_case);
  if (technique == Technique::kMpsStatic) {
    const unsigned size = the_case.node.chunk_multiprocessors;
    for (const Job& job : the_case.demand.jobs) {
      plan.chunks.push_back((job.multiprocessors + size - 1) / size);
    }
    plan.text = fmt::format("{} static partitions of SMs, limit {}", count,
                            limits_text(plan.memory_limits_mib));
    return plan;
  }
  plan.thread_percent = std::max(1U, 100 / count);
  plan.text = fmt::format("{} clients at {} % of the threads, limit {}", count,
                          *plan.thread_percent, limits_text(plan.memory_limits_mib));
  return plan;
}

SharingPlan hybrid_plan(const Case& the_case) {
  SharingPlan plan;
  const HybridChoice& hybrid = the_case.hybrid;
  plan.instances = hybrid.instances;
  plan.thread_percent = 100 / hybrid.tenants_each;
  plan.memory_limits_mib.assign(
      the_case.demand.jobs.size(),
      hybrid.profile->memory_mib / hybrid.tenants_each - the_case.node.context_mib);
  plan.text = fmt::format("{}, up to {} clients in each at {} % of its threads, limit {}",
                          instances_text(plan.instances), hybrid.tenants_each, *plan.thread_percent,
                          limits_text(plan.memory_limits_mib));
  return plan;
}

std::string isolation_reason(Technique technique) {
  const Isolation& facts = isolation(technique);
  return fmt::format("isolates memory: {}; compute: {}", facts.memory, facts.compute);
}

}  // namespace

SharingPlan plan_for(const Case& the_case, Technique technique) {
  SharingPlan plan;
  const std::size_t count = the_case.demand.jobs.size();
  switch (technique) {
    case Technique::kMig:
    case Technique::kVgpuMig:
      plan.instances = the_case.mig.instances;
      plan.text = instances_text(plan.instances);
      return plan;
    case Technique::kMigMps:
      return hybrid_plan(the_case);
    case Technique::kMpsV3:
    case Technique::kMpsStatic:
    case Technique::kMps:
      return mps_plan(the_case, technique);
    case Technique::kVgpu:
      plan.memory_limits_mib = memory_limits(the_case);
      plan.text = fmt::format("{} vGPUs, fixed-share scheduler, frame buffer {}", count,
                              limits_text(plan.memory_limits_mib));
      return plan;
    case Technique::kTimeSlice:
    case Technique::kShim:
      plan.slice_length = slice_length(the_case.demand.kind);
      plan.memory_limits_mib = memory_limits(the_case);
      plan.text = fmt::format("{} tenants in {} time slices, memory budget {}", count,
                              to_string(*plan.slice_length), limits_text(plan.memory_limits_mib));
      return plan;
    case Technique::kStreams:
      plan.text = fmt::format("one server process, {} instances on {} streams", count, count);
      return plan;
    case Technique::kGreenContexts:
      plan.text = fmt::format("one process, {} green contexts of {} SMs", count,
                              the_case.node.multiprocessors / count);
      return plan;
    case Technique::kSwap:
      plan.text = fmt::format("{} tenants in turns of seconds, memory managed by the host", count);
      return plan;
    case Technique::kExclusive:
      plan.text = count == 1 ? "the whole GPU" : "the whole GPU, one tenant after the other";
      return plan;
  }
  return plan;
}

std::vector<std::string> reasons_for(const Case& the_case, const Option& option,
                                     const Score& score) {
  const double percent = 100 * option.utilisation;
  std::vector<std::pair<double, std::string>> parts = {
      {score.isolation, isolation_reason(option.technique)},
      {score.utilisation, fmt::format("uses {:.0f} % of the GPU", percent)},
      {score.latency, option.latency_factor < 1.05
                          ? std::string("latency as if alone")
                          : fmt::format("latency about {:.2g} times that of one tenant alone",
                                        option.latency_factor)},
      {score.cost, the_case.node.mig == MigAvailability::kOn
                       ? "little to set up: the mode is already on"
                       : "little to set up and to undo"},
  };
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  return {parts[0].second, parts[1].second};
}

std::vector<std::string> warnings_for(const Case& the_case, const Option& option) {
  std::vector<std::string> warnings;
  if (option.verdict.fit == Fit::kConditional) {
    warnings.push_back(fmt::format("on the condition: {}", option.verdict.condition));
  }
  const std::size_t count = the_case.demand.jobs.size();
  switch (option.technique) {
    case Technique::kMig:
      break;
    case Technique::kVgpuMig:
    case Technique::kVgpu:
      warnings.emplace_back(
          "needs a vGPU licence: without one, performance is throttled over time");
      break;
    case Technique::kMigMps:
    case Technique::kMpsV3:
    case Technique::kMpsStatic:
    case Technique::kMps:
      warnings.emplace_back(
          "fault domain: a fatal fault of one client ends every client of the same server");
      warnings.emplace_back(
          "a client that misses the pipe directory runs without any limit: verify it");
      break;
    case Technique::kTimeSlice:
    case Technique::kShim:
    case Technique::kSwap:
      warnings.emplace_back("out-of-memory: one tenant can take the memory of all");
      break;
    case Technique::kStreams:
    case Technique::kGreenContexts:
      warnings.emplace_back("fault domain: a sticky error ends the whole process");
      break;
    case Technique::kExclusive:
      if (count > 1) {
        warnings.push_back(fmt::format("{} tenants queue for one GPU", count));
      }
      break;
  }
  const bool mode_changes = option.technique == Technique::kMig ||
                            option.technique == Technique::kMigMps ||
                            option.technique == Technique::kVgpuMig;
  if (mode_changes && the_case.node.mig == MigAvailability::kChangeable) {
    warnings.emplace_back("MIG mode has to be enabled first, which needs an idle GPU");
  }
  return warnings;
}

std::string explain_code(std::string_view code) {
  for (const CodeWords& entry : kCodes) {
    if (entry.code == code) {
      return entry.words;
    }
  }
  return std::string(code);
}

}  // namespace septet::partition
