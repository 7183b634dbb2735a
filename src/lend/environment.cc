#include "lend/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "lend/slice_want.h"

namespace septet::lend {

namespace {

// The period that keeps stalls short; see os/cgroup.h.
constexpr unsigned kCpuPeriodUs = 10000;
constexpr double kSmallestQuotaUs = 1000;

std::string devices_of(const Lease& lease) {
  std::string devices;
  for (const Holding& holding : lease.holdings) {
    devices += (devices.empty() ? "" : ",") + holding.partition.value();
  }
  return devices;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " ") + shell_quoted(word);
  }
  return text;
}

void add_mps_variables(const Lease& lease, const LeaseSetting& setting,
                       std::vector<Variable>& variables) {
  const bool uses_mps = !setting.mps_pipe_directory.empty() && !lease.holdings.empty();
  const bool by_partition = uses_mps && !setting.mps_sm_partition.empty();
  const auto put = [&](const char* name, bool applies, std::string value) {
    variables.push_back(
        {name, applies ? std::optional<std::string>(std::move(value)) : std::nullopt});
  };
  const Holding holding = lease.holdings.empty() ? Holding{} : lease.holdings[0];
  put("CUDA_MPS_PIPE_DIRECTORY", uses_mps, setting.mps_pipe_directory);
  // A static partition and a percentage exclude each other.
  put("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", uses_mps && !by_partition,
      fmt::format("{}", holding.percent));
  // One device is visible, so its ordinal is 0. Naming a device that is not visible would drop
  // every limit of the client.
  put("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", uses_mps, fmt::format("0={}M", holding.memory_mib));
  put("CUDA_MPS_CLIENT_PRIORITY", uses_mps, lease.request.priority == Priority::kLow ? "1" : "0");
  put("CUDA_MPS_SM_PARTITION", by_partition, setting.mps_sm_partition);
  put("CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING", false, "");
}

}  // namespace

std::vector<Variable> lease_variables(const Lease& lease, const LeaseSetting& setting) {
  const std::string devices = devices_of(lease);
  std::vector<Variable> variables = {{"CUDA_VISIBLE_DEVICES", devices},
                                     {"NVIDIA_VISIBLE_DEVICES", devices}};
  add_mps_variables(lease, setting, variables);
  std::string cdi;
  for (const std::string& name : cdi_names(lease)) {
    cdi += (cdi.empty() ? "" : ",") + name;
  }
  variables.push_back({"SEPTET_LEASE", fmt::format("{}", lease.id.value())});
  variables.push_back({"SEPTET_SLICE", to_string(lease.request.want)});
  variables.push_back({"SEPTET_LIMITS", setting.is_enforced ? "enforced" : "advisory"});
  variables.push_back(
      {"SEPTET_SIMULATED", setting.is_simulated ? std::optional<std::string>("1") : std::nullopt});
  variables.push_back({"SEPTET_CDI", cdi});
  variables.push_back({"SEPTET_DOCKER_ARGS",
                       joined(container_arguments(lease, setting, ContainerRuntime::kDocker))});
  return variables;
}

std::vector<std::string> cdi_names(const Lease& lease) {
  std::vector<std::string> names;
  for (const Holding& holding : lease.holdings) {
    names.push_back("nvidia.com/gpu=" + holding.partition.value());
  }
  return names;
}

std::vector<std::string> container_arguments(const Lease& lease, const LeaseSetting& setting,
                                             ContainerRuntime runtime) {
  std::vector<std::string> arguments;
  if (runtime == ContainerRuntime::kDocker) {
    // The inner quotes are docker's: they keep the commas of several devices together.
    arguments = {"--gpus", "\"device=" + devices_of(lease) + "\""};
  } else {
    for (const std::string& name : cdi_names(lease)) {
      arguments.insert(arguments.end(), {"--device", name});
    }
  }
  if (!setting.mps_pipe_directory.empty()) {
    const std::string& pipe = setting.mps_pipe_directory;
    // MPS needs the daemon's shared memory and the same user id.
    arguments.insert(arguments.end(), {"-v", pipe + ":" + pipe, "--ipc=host", "--user",
                                       fmt::format("{}", lease.request.owner.uid.value())});
    std::vector<Variable> variables;
    add_mps_variables(lease, setting, variables);
    for (const Variable& variable : variables) {
      if (variable.value) {
        arguments.insert(arguments.end(), {"-e", variable.name + "=" + *variable.value});
      }
    }
  }
  if (setting.cpus > 0) {
    const double quota = std::max(kSmallestQuotaUs, std::round(setting.cpus * kCpuPeriodUs));
    arguments.insert(arguments.end(), {"--cpu-period", fmt::format("{}", kCpuPeriodUs),
                                       "--cpu-quota", fmt::format("{:.0f}", quota)});
  }
  if (setting.memory_bytes > 0) {
    arguments.insert(arguments.end(), {"--memory", fmt::format("{}b", setting.memory_bytes)});
  }
  arguments.insert(arguments.end(), {"-e", fmt::format("SEPTET_LEASE={}", lease.id.value())});
  return arguments;
}

std::optional<EnvironmentFormat> parse_environment_format(std::string_view word) {
  constexpr std::array<const char*, 5> kWords = {"sh", "docker", "podman", "slurm", "cdi"};
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    if (word == kWords[i]) {
      return static_cast<EnvironmentFormat>(i);
    }
  }
  return std::nullopt;
}

std::string render_environment(const Lease& lease, const LeaseSetting& setting,
                               EnvironmentFormat format) {
  std::string text;
  switch (format) {
    case EnvironmentFormat::kShell:
    case EnvironmentFormat::kSlurm:
      for (const Variable& variable : lease_variables(lease, setting)) {
        if (!variable.value) {
          text += fmt::format("unset {}\n", variable.name);
        } else if (format == EnvironmentFormat::kShell) {
          text += fmt::format("export {}={}\n", variable.name, shell_quoted(*variable.value));
        } else {
          // Slurm takes the rest of the line as it is, quotes included.
          text += fmt::format("export {}={}\n", variable.name, *variable.value);
        }
      }
      return text;
    case EnvironmentFormat::kDocker:
      return joined(container_arguments(lease, setting, ContainerRuntime::kDocker)) + "\n";
    case EnvironmentFormat::kPodman:
      return joined(container_arguments(lease, setting, ContainerRuntime::kPodman)) + "\n";
    case EnvironmentFormat::kCdi:
      for (const std::string& name : cdi_names(lease)) {
        text += name + "\n";
      }
      return text;
  }
  return text;
}

std::string shell_quoted(std::string_view word) {
  const bool is_plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:=,@%+").find(c) != std::string_view::npos;
  });
  if (is_plain) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (const char c : word) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

}  // namespace septet::lend
