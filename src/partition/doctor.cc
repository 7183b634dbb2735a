#include "partition/doctor.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "gpu/gpu_model.h"

namespace septet::partition {
namespace {

using gpu::MigMode;

// Collects the findings of one place.
class Findings {
 public:
  explicit Findings(const Examination& examination) : examination_(examination) {}

  void problem(std::optional<unsigned> gpu, const char* code, std::string what, std::string mend) {
    all_.push_back({Severity::kProblem, code, gpu, std::move(what), std::move(mend)});
  }
  void notice(std::optional<unsigned> gpu, const char* code, std::string what, std::string mend) {
    all_.push_back({Severity::kNotice, code, gpu, std::move(what), std::move(mend)});
  }
  // A septet command for one GPU: "septet --simulate X reset --gpu 0".
  std::string command(const std::string& words, unsigned gpu) const {
    return fmt::format("septet {}{} --gpu {}", examination_.simulate, words, gpu);
  }
  std::vector<Finding> take() {
    std::stable_sort(all_.begin(), all_.end(), [](const Finding& a, const Finding& b) {
      return a.severity != b.severity ? a.severity < b.severity : a.gpu < b.gpu;
    });
    return std::move(all_);
  }

 private:
  const Examination& examination_;
  std::vector<Finding> all_;
};

std::string holders_of(const gpu::GpuState& gpu) {
  std::vector<std::string> words;
  for (const gpu::GpuProcess& process : gpu.processes) {
    words.push_back(fmt::format("process {} ({})", process.pid,
                                process.name.empty() ? "name unknown" : process.name));
  }
  return words.empty() ? "no process that the driver names" : join_words(words);
}

std::string name_of(const gpu::GpuState& gpu, gpu::ProfileId id) {
  for (const gpu::GpuInstanceProfile& profile : gpu.profiles) {
    if (profile.id == id) {
      return profile.name;
    }
  }
  return fmt::format("profile {}", id.value());
}

void check_host(const Examination& examination, Findings& findings) {
  const gpu::HostFacts& host = examination.host;
  if (examination.driver_error) {
    if (host.nouveau_module && !host.nvidia_module) {
      findings.problem({}, "nouveau_loaded",
                       "the free driver nouveau holds the GPUs, the NVIDIA driver is not loaded",
                       "install NVIDIA's driver, blacklist nouveau, reboot");
    }
    findings.problem({}, "driver_unavailable", examination.driver_error->message,
                     examination.driver_error->hint);
    return;
  }
  if (examination.driver.simulated) {
    if (!host.no_slice_limits.empty()) {
      findings.notice({}, "slices_unlimited",
                      "simulated slices would run without limits of processor time and memory: " +
                          host.no_slice_limits,
                      "run as root, or in a session whose control group is delegated to you");
    }
    return;
  }
  if (!host.kernel_driver.empty() && host.kernel_driver != examination.driver.driver_version) {
    findings.problem({}, "driver_version_mismatch",
                     fmt::format("the library is of driver {}, the loaded kernel module of {}",
                                 examination.driver.driver_version, host.kernel_driver),
                     "reload the nvidia modules, or reboot");
  }
  if (host.may_open_gpu == false) {
    findings.problem({}, "device_permission", "this user may not open /dev/nvidiactl",
                     "run as root, or join the group that owns /dev/nvidia*");
  }
  if (!host.is_root && host.may_configure_mig != true) {
    findings.notice({}, "mig_permission",
                    "this user may not change MIG: not root, and no access to the capability "
                    "/dev/nvidia-caps/nvidia-cap1",
                    "run septet apply and reset as root");
  }
}

void check_driver_branch(const Examination& examination, const gpu::GpuState& gpu,
                         Findings& findings) {
  const auto branch = parse_uint(split(examination.driver.driver_version, '.').front());
  for (const gpu::GpuModel& model : gpu::gpu_models()) {
    const auto& ids = model.pci_device_ids;
    const bool is_it = std::find(ids.begin(), ids.end(), gpu.pci_device_id) != ids.end();
    if (is_it && branch && *branch < model.first_driver_branch) {
      findings.problem(gpu.index, "driver_too_old",
                       fmt::format("driver {} is too old for MIG on {}",
                                   examination.driver.driver_version, gpu.name),
                       fmt::format("install driver {} or newer", model.first_driver_branch));
    }
  }
}

void check_mode(const gpu::GpuState& gpu, Findings& findings) {
  if (gpu.mig_current == gpu.mig_pending) {
    return;
  }
  const bool enabling = gpu.mig_pending == MigMode::kEnabled;
  const std::string what =
      fmt::format("MIG mode is {}, and a change to {} is pending",
                  enabling ? "disabled" : "enabled", enabling ? "enabled" : "disabled");
  if (!gpu.processes.empty()) {
    findings.problem(gpu.index, "mode_pending",
                     fmt::format("{}; held by {}", what, holders_of(gpu)),
                     "end these processes, then give the command again");
  } else {
    findings.problem(gpu.index, "mode_pending", what + "; it waits for a reset of the GPU",
                     fmt::format("nvidia-smi --gpu-reset -i {}, or reboot (always needed in a "
                                 "virtual machine)",
                                 gpu.index));
  }
}

void check_instances(const gpu::GpuState& gpu, Findings& findings) {
  if (gpu.mig_current != MigMode::kEnabled) {
    return;
  }
  if (gpu.instances.empty()) {
    findings.problem(
        gpu.index, "instances_missing",
        "MIG is enabled and there is no GPU instance: no program can use this GPU",
        gpu.profiles.empty()
            ? findings.command("reset --mig-off", gpu.index)
            : fmt::format("{}, or {}",
                          findings.command("apply " + gpu.profiles.front().name + ":1", gpu.index),
                          findings.command("reset --mig-off", gpu.index)));
    return;
  }
  for (const gpu::GpuInstance& instance : gpu.instances) {
    if (instance.compute_instances.empty()) {
      findings.problem(
          gpu.index, "compute_instance_missing",
          fmt::format(
              "GPU instance {} ({} at {}:{}) has no compute instance: no program can use it",
              instance.id.value(), name_of(gpu, instance.profile_id), instance.placement.start,
              instance.placement.size),
          fmt::format("nvidia-smi mig -i {} -gi {} -cci", gpu.index, instance.id.value()));
    }
  }
}

// A layout that nobody uses and nobody asked septet to keep: probably of an earlier user.
void check_leftovers(const Patient& patient, const gpu::GpuState& gpu, Findings& findings) {
  if (gpu.instances.empty() || !gpu.processes.empty() || patient.desired) {
    return;
  }
  findings.notice(
      gpu.index, "layout_unclaimed",
      fmt::format("{} lies idle, and septet was not told to keep it", to_string(layout_of(gpu))),
      fmt::format("if it is left over: {}", findings.command("reset --mig-off", gpu.index)));
}

void check_drift(const Patient& patient, const gpu::GpuState& gpu, Findings& findings) {
  if (patient.change_interrupted) {
    findings.problem(gpu.index, "change_interrupted",
                     "a change of layout was interrupted; its journal is still there",
                     findings.command("restore", gpu.index));
    return;
  }
  const Layout now = layout_of(gpu);
  if (patient.desired && *patient.desired != now) {
    findings.problem(
        gpu.index, "layout_drift",
        fmt::format("the layout is {}, wanted is {}", to_string(now), to_string(*patient.desired)),
        findings.command("restore", gpu.index));
  }
}

}  // namespace

const char* to_string(Severity severity) {
  switch (severity) {
    case Severity::kProblem:
      return "problem";
    case Severity::kNotice:
      return "notice";
  }
  return "";
}

std::vector<Finding> diagnose(const Examination& examination) {
  Findings findings(examination);
  check_host(examination, findings);
  for (const Patient& patient : examination.gpus) {
    if (!patient.state.ok()) {
      findings.problem(patient.index, "gpu_unreadable", patient.state.error().message,
                       patient.state.error().hint.empty()
                           ? "look at the kernel log for Xid messages"
                           : patient.state.error().hint);
      continue;
    }
    const gpu::GpuState& gpu = *patient.state;
    check_driver_branch(examination, gpu, findings);
    check_mode(gpu, findings);
    check_instances(gpu, findings);
    check_leftovers(patient, gpu, findings);
    check_drift(patient, gpu, findings);
  }
  if (!examination.driver_error && examination.gpus.empty()) {
    findings.problem({}, "no_gpu", "the driver sees no GPU",
                     "look for it with lspci -d 10de:, and at the kernel log for NVRM");
  }
  return findings.take();
}

}  // namespace septet::partition
