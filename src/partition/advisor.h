// The technique advisor: which way to share one GPU fits a stated demand, with the reasons, and why
// every other way was rejected.
//
// recommend() is a pure function of its two arguments: no I/O, no clock, no randomness; any thread.
// The rule: every technique passes its hard gates or is rejected with the codes of all gates that
// failed; what is left is scored by isolation, use of the chip, latency and cost, weighted by the
// kind of work. The three fitted constants stand in LatencyModel so that a measurement of this very
// machine can replace them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/types.h"
#include "partition/technique.h"

namespace septet::partition {

// How much latency grows per extra active tenant. Fitted to seven DenseNet-121 clients on one H200
// (ONNX Runtime, batch 1); graphs of captured CUDA calls suffer less under time-slicing.
struct LatencyModel {
  double mps_per_tenant = 0.05;
  double streams_per_tenant = 0.14;
  double time_slice_factor = 1.7;
};

enum class MigAvailability {
  kOff,         // the mode is off and may not be changed now
  kChangeable,  // the mode is off and may be changed now
  kOn,
};

// The GPU and what its machine offers.
struct Node {
  std::string gpu_name;
  unsigned compute_capability = 0;  // 90 = 9.0
  unsigned multiprocessors = 0;     // with MIG off
  std::int64_t memory_mib = 0;
  unsigned chunk_multiprocessors = 8;             // of a static MPS partition: 8 from 9.0, 4 at 8.x
  std::vector<gpu::GpuInstanceProfile> profiles;  // empty where MIG is unsupported
  MigAvailability mig = MigAvailability::kOff;
  unsigned driver_major = 0;
  unsigned cuda_version = 0;  // 13000
  bool has_mps = false;       // the MPS control program is installed
  bool has_dmem = false;      // control groups v2 with the dmem controller
  bool has_vgpu_host = false;
  bool may_preload = false;  // an interposing library may be put into tenants' processes
  std::int64_t host_memory_mib = 0;
  bool serves_several_users = false;  // tenants run under different user ids
  double time_slice_ms = 2.0;
  std::int64_t context_mib = 500;  // what one CUDA context takes
  LatencyModel latency;
};

struct Job {
  std::int64_t memory_mib = 0;
  unsigned multiprocessors = 0;  // that it can keep busy
  double duty = 1.0;             // share of time it has work, 0..1
};

enum class Trust {
  kOneProcess,  // all jobs are models of one process
  kTeam,        // colleagues who accept each other's faults
  kStrangers,
};

struct Demand {
  WorkKind kind = WorkKind::kInteractive;
  std::vector<Job> jobs;
  Trust trust = Trust::kTeam;
  bool needs_vm = false;
  std::optional<double> target_p99_ms;
  std::optional<double> alone_ms;  // latency of one job alone on the GPU
};

// One MIG instance of a plan; tenants > 1 when MPS shares it.
struct PlannedInstance {
  std::string profile;
  gpu::Placement placement;
  unsigned tenants = 1;
  bool operator==(const PlannedInstance&) const = default;
};

enum class SliceLength { kDefault, kShort, kMedium, kLong };
const char* to_string(SliceLength length);

// How to set the technique up. What does not apply is empty.
struct SharingPlan {
  std::vector<PlannedInstance> instances;
  std::optional<unsigned> thread_percent;       // per tenant
  std::vector<std::int64_t> memory_limits_mib;  // per job
  std::vector<unsigned> chunks;                 // static SM partitions, per job
  std::optional<SliceLength> slice_length;
  std::string text;  // all of it in one line
};

struct Option {
  Technique technique = Technique::kExclusive;
  double score = 0;  // 0..100
  Verdict verdict;
  double latency_factor = 1;  // against one job alone
  double utilisation = 0;     // share of the chip doing useful work
  SharingPlan plan;
  std::vector<std::string> reasons;   // the two strongest
  std::vector<std::string> warnings;  // fault domain, out-of-memory, licence
};

struct Rejection {
  Technique technique = Technique::kExclusive;
  std::vector<std::string> codes;  // every gate that failed, in the order of the gates
};

struct Advice {
  std::vector<Option> options;        // best first
  std::vector<Rejection> rejections;  // in the order of kTechniques
};

Advice recommend(const Node& node, const Demand& demand);

// What a reason code means for a reader; the code itself if it is unknown.
std::string explain_code(std::string_view code);

}  // namespace septet::partition
