// Technique: the ways to share one GPU, what each isolates and what it is fit for.
//
// Values only; any thread. The order of the enum is the order in which ties of the advisor are
// broken. The two tables here are the ones teams choose by: isolation() says what a technique
// separates (sources: NVIDIA's MIG, MPS and vGPU documentation), verdict() says which technique
// suits which kind of work (time-slicing, vGPU and MIG columns: CERN's series on GPU sharing).
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace septet::partition {

enum class Technique {
  kMig,
  kVgpuMig,
  kMigMps,
  kMpsV3,
  kMpsStatic,
  kMps,
  kVgpu,
  kTimeSlice,
  kShim,
  kStreams,
  kGreenContexts,
  kSwap,
  kExclusive,
};

inline constexpr std::array kTechniques = {
    Technique::kMig,       Technique::kVgpuMig, Technique::kMigMps,        Technique::kMpsV3,
    Technique::kMpsStatic, Technique::kMps,     Technique::kVgpu,          Technique::kTimeSlice,
    Technique::kShim,      Technique::kStreams, Technique::kGreenContexts, Technique::kSwap,
    Technique::kExclusive,
};

// The word used on the command line and in files, e.g. "mig_mps".
const char* to_string(Technique technique);
std::optional<Technique> parse_technique(std::string_view word);

// What tenants of the technique share and what is theirs alone, in words for a table.
struct Isolation {
  const char* memory;
  const char* compute;
  const char* faults;
  const char* parts;     // how many tenants at most
  const char* needs;     // hardware, driver, licence
  const char* priority;  // whether one tenant can be preferred
};

const Isolation& isolation(Technique technique);

// Kinds of work, as users name them.
enum class WorkKind {
  kLatency,      // latency-sensitive: CAD, engineering, online inference
  kInteractive,  // notebooks, development
  kPerformance,  // performance-intensive: simulation, training
  kLow,          // low priority: CI runners, batch
};

inline constexpr std::array kWorkKinds = {WorkKind::kLatency, WorkKind::kInteractive,
                                          WorkKind::kPerformance, WorkKind::kLow};

// "latency", "interactive", "performance", "low".
const char* to_string(WorkKind kind);
std::optional<WorkKind> parse_work_kind(std::string_view word);

enum class Fit { kYes, kConditional, kNo };

struct Verdict {
  Fit fit = Fit::kNo;
  const char* condition = "";  // for kConditional: on what condition
};

Verdict verdict(WorkKind kind, Technique technique);

}  // namespace septet::partition
