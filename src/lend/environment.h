// What a holder's programs and containers need to see: the environment of a lease, in several
// notations.
//
// Pure text; any thread. Variables that a technique does not use are unset on purpose: a stale MPS
// variable of an earlier shell would silently change what a program gets.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lend/types.h"

namespace septet::lend {

// What the lease's set-up produced.
struct LeaseSetting {
  std::string mps_pipe_directory;  // empty = no MPS
  std::string mps_sm_partition;    // "<GPU-uuid>/<id>"; empty = a percentage
  // Limits of a simulated slice; 0 = none.
  double cpus = 0;
  std::int64_t memory_bytes = 0;
  bool is_simulated = false;
  bool is_enforced = false;  // else every output says "advisory"
};

struct Variable {
  std::string name;
  std::optional<std::string> value;  // absent = unset it
  bool operator==(const Variable&) const = default;
};

std::vector<Variable> lease_variables(const Lease& lease, const LeaseSetting& setting);

// Device names for container runtimes that know CDI: "nvidia.com/gpu=MIG-...".
std::vector<std::string> cdi_names(const Lease& lease);

enum class ContainerRuntime { kDocker, kPodman };
// The arguments of `docker run` or `podman run`, one per element.
std::vector<std::string> container_arguments(const Lease& lease, const LeaseSetting& setting,
                                             ContainerRuntime runtime);

enum class EnvironmentFormat { kShell, kDocker, kPodman, kSlurm, kCdi };
std::optional<EnvironmentFormat> parse_environment_format(std::string_view word);
// Shell: for eval. Slurm: what a TaskProlog prints. Docker, podman: arguments, quoted for a shell.
std::string render_environment(const Lease& lease, const LeaseSetting& setting,
                               EnvironmentFormat format);

// Quoted for a POSIX shell, only where needed.
std::string shell_quoted(std::string_view word);

}  // namespace septet::lend
