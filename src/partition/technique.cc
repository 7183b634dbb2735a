#include "partition/technique.h"

#include "base/check.h"

namespace septet::partition {

namespace {

constexpr std::size_t index_of(Technique technique) { return static_cast<std::size_t>(technique); }
constexpr std::size_t index_of(WorkKind kind) { return static_cast<std::size_t>(kind); }

constexpr std::array<const char*, kTechniques.size()> kNames = {
    "mig",        "vgpu_mig", "mig_mps", "mps_v3", "mps_static", "mps",      "vgpu",
    "time_slice", "shim",     "streams", "green",  "swap",       "exclusive"};

constexpr std::array<const char*, kWorkKinds.size()> kKindNames = {"latency", "interactive",
                                                                   "performance", "low"};

// In the order of the enum.
constexpr std::array<Isolation, kTechniques.size()> kIsolation = {{
    {"hardware, bandwidth and L2 included", "hardware", "hardware", "7 (A30 and RTX PRO 6000: 4)",
     "A30, A100, H100, H200, B200 and alike", "none"},
    {"hardware", "hardware", "virtual machine and hardware", "7", "MIG card, vGPU licence", "none"},
    {"hardware between partitions, pinned limit inside", "hardware between, thread ceiling inside",
     "none inside a partition", "partitions x 48 or 60 clients", "MIG card, MPS control program",
     "2 levels inside a partition"},
    {"kernel-enforced per control group", "thread ceiling per namespace, or SM partitions",
     "none between clients of one server", "servers x namespaces",
     "driver 615 or newer, control groups v2 with dmem, MIG off", "2 levels"},
    {"own address space, pinned limit", "exclusive chunks of SMs",
     "none: a fatal fault reaches every client", "SMs / chunk",
     "compute capability 8.0, driver 590 or newer", "none"},
    {"own address space, optional pinned limit", "thread ceiling, not a reservation",
     "none: a fatal fault reaches every client", "48 clients (60 from driver 590)",
     "compute capability 7.0", "2 levels"},
    {"fixed frame buffer", "scheduler: best effort, equal share or fixed share", "virtual machine",
     "by type, about 4 to 48", "licensed data-centre card", "by share"},
    {"none: every allocation stays resident", "whole GPU in turns, equal turns",
     "own context; a device-level fault reaches all", "memory only", "any GPU", "none in hardware"},
    {"counted in user space, can be bypassed", "launches are throttled", "as time-slicing",
     "about 1000 processes", "any GPU, preloading allowed", "high blocks low"},
    {"none: one context", "none; stream priorities", "none: a sticky error ends the process",
     "unlimited; 8 to 32 hardware queues", "one process", "stream priority"},
    {"none: one context", "disjoint SM subsets", "none: a sticky error ends the process",
     "SMs / granularity", "one process, CUDA 12.4", "none"},
    {"oversubscribed: each tenant sees the whole GPU", "exclusive turns of seconds", "own contexts",
     "host memory", "Linux, preloading allowed", "none"},
    {"the whole GPU", "the whole GPU", "the whole GPU", "1", "any GPU", "by the queue"},
}};

constexpr Verdict kYes = {Fit::kYes, ""};
constexpr Verdict kNo = {Fit::kNo, ""};
constexpr Verdict only_if(const char* condition) { return {Fit::kConditional, condition}; }

// Columns in the order of the enum: mig, vgpu_mig, mig_mps, mps_v3, mps_static, mps, vgpu,
// time_slice, shim, streams, green, swap, exclusive.
using Row = std::array<Verdict, kTechniques.size()>;
constexpr const char* kOwnModels = "own models of one process only";
constexpr const char* kPriorityOne = "neighbours run at the lower priority, one team";
constexpr const char* kOneFault = "one tenant's fault hits all";
constexpr const char* kHalfTheSms = "each job needs less than half of the SMs";

constexpr std::array<Row, kWorkKinds.size()> kVerdicts = {{
    // latency
    {kYes, kYes, only_if(kPriorityOne), kYes, kYes, only_if(kPriorityOne),
     only_if("possible, with the fixed-share scheduler"), kNo, kNo, only_if(kOwnModels),
     only_if(kOwnModels), kNo, kYes},
    // interactive
    {kYes, kYes, only_if(kOneFault), kYes, only_if(kOneFault), only_if(kOneFault), kYes,
     only_if("out-of-memory has to be guarded"), only_if("the quota can be bypassed"), kNo, kNo,
     only_if("tenants take turns of seconds"), kYes},
    // performance
    {kYes, kYes, only_if(kHalfTheSms), kYes, kYes, only_if(kHalfTheSms), kNo, kNo, kNo, kYes, kYes,
     only_if("batch only"), kYes},
    // low
    {kYes, only_if("not cost-effective"), kYes, kYes, kYes, kYes, only_if("not cost-effective"),
     kYes, kYes, kNo, kNo, kYes, kYes},
}};

}  // namespace

const char* to_string(Technique technique) { return kNames[index_of(technique)]; }

std::optional<Technique> parse_technique(std::string_view word) {
  for (const Technique technique : kTechniques) {
    if (word == to_string(technique)) {
      return technique;
    }
  }
  return std::nullopt;
}

const Isolation& isolation(Technique technique) { return kIsolation[index_of(technique)]; }

const char* to_string(WorkKind kind) { return kKindNames[index_of(kind)]; }

std::optional<WorkKind> parse_work_kind(std::string_view word) {
  for (const WorkKind kind : kWorkKinds) {
    if (word == to_string(kind)) {
      return kind;
    }
  }
  return std::nullopt;
}

Verdict verdict(WorkKind kind, Technique technique) {
  return kVerdicts[index_of(kind)][index_of(technique)];
}

}  // namespace septet::partition
