// Doctor: what is wrong with this machine's GPUs, why, and the command that mends it. Pure.
//
// It judges observations only: who reads them is the verb. Every finding names what was seen, so
// that a person can check it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/gpu_driver.h"
#include "gpu/host_facts.h"
#include "partition/layout.h"

namespace septet::partition {

// kProblem: something does not work or will not; kNotice: worth knowing, may be meant so.
enum class Severity { kProblem, kNotice };
const char* to_string(Severity severity);

struct Finding {
  Severity severity = Severity::kProblem;
  std::string code;             // stable word for scripts: "compute_instance_missing"
  std::optional<unsigned> gpu;  // nothing: the whole machine
  std::string what;             // what was found, and what follows from it
  std::string mend;             // the command, or what to do
  bool operator==(const Finding&) const = default;
};

// One GPU as far as it could be read.
struct Patient {
  unsigned index = 0;
  Result<gpu::GpuState> state;
  std::optional<Layout> desired;    // what restore would re-create at boot
  bool change_interrupted = false;  // a journal lies there
};

struct Examination {
  gpu::HostFacts host;
  std::optional<Error> driver_error;  // the driver could not be opened
  gpu::DriverInfo driver;
  std::string simulate;  // "--simulate X " for commands, or empty
  std::vector<Patient> gpus;
};

// Problems first, then by GPU.
std::vector<Finding> diagnose(const Examination& examination);

}  // namespace septet::partition
