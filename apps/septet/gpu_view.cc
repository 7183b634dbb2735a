#include "gpu_view.h"

#include <fmt/format.h>

#include "gpu/edge/open_driver.h"
#include "gpu/selector.h"

namespace septet::app {
namespace {

Json to_json(const gpu::Placement& span) { return {{"start", span.start}, {"size", span.size}}; }

std::string profile_name(const gpu::GpuState& gpu, gpu::ProfileId id) {
  for (const gpu::GpuInstanceProfile& profile : gpu.profiles) {
    if (profile.id == id) {
      return profile.name;
    }
  }
  return fmt::format("profile {}", id.value());
}

Json to_json(const gpu::GpuProcess& process) {
  Json json = {{"pid", process.pid},
               {"name", process.name},
               {"used_memory_mib", process.used_memory_bytes / (1024 * 1024)},
               {"gpu_instance", nullptr},
               {"compute_instance", nullptr}};
  if (process.gpu_instance) {
    json["gpu_instance"] = process.gpu_instance->value();
  }
  if (process.compute_instance) {
    json["compute_instance"] = process.compute_instance->value();
  }
  return json;
}

}  // namespace

Result<GpuView> read_gpus(const Globals& globals, const std::string& selectors) {
  GpuView view;
  auto driver = gpu::open_driver(globals.simulate);
  if (!driver.ok()) {
    return driver.error();
  }
  view.driver = std::move(driver).value();
  const auto info = view.driver->info();
  const auto count = view.driver->gpu_count();
  if (!info.ok() || !count.ok()) {
    return info.ok() ? count.error() : info.error();
  }
  view.info = *info;
  std::vector<gpu::GpuState> all;
  for (unsigned index = 0; index < *count; ++index) {
    auto state = view.driver->observe(index);
    if (!state.ok()) {
      return state.error();
    }
    all.push_back(std::move(state).value());
  }
  const auto wanted = gpu::select_gpus(all, selectors.empty() ? "all" : selectors);
  if (!wanted.ok()) {
    return wanted.error();
  }
  for (const std::size_t position : *wanted) {
    view.gpus.push_back(std::move(all[position]));
  }
  return view;
}

const char* to_word(gpu::MigMode mode) {
  switch (mode) {
    case gpu::MigMode::kUnsupported:
      return "unsupported";
    case gpu::MigMode::kDisabled:
      return "disabled";
    case gpu::MigMode::kEnabled:
      return "enabled";
  }
  return "";
}

std::string mode_text(const gpu::GpuState& gpu) {
  return gpu.mig_current == gpu.mig_pending
             ? to_word(gpu.mig_current)
             : fmt::format("{}, {} pending", to_word(gpu.mig_current), to_word(gpu.mig_pending));
}

Json to_json(const gpu::DriverInfo& info) {
  return {{"version", info.driver_version},
          {"nvml", info.nvml_version},
          {"cuda", info.cuda_version},
          {"library", info.library},
          {"simulated", info.simulated}};
}

Json to_json(const gpu::GpuState& gpu) {
  Json json = {{"index", gpu.index},
               {"name", gpu.name},
               {"uuid", gpu.uuid.value()},
               {"pci_bus_id", gpu.pci_bus_id},
               {"pci_device_id", fmt::format("0x{:08X}", gpu.pci_device_id)},
               {"memory_total_mib", gpu.memory_total_mib},
               {"memory_used_mib", gpu.memory_used_mib},
               {"mig_current", to_word(gpu.mig_current)},
               {"mig_pending", to_word(gpu.mig_pending)}};
  json["instances"] = Json::array();
  for (const gpu::GpuInstance& instance : gpu.instances) {
    Json part = {{"id", instance.id.value()},
                 {"profile", profile_name(gpu, instance.profile_id)},
                 {"profile_id", instance.profile_id.value()},
                 {"placement", to_json(instance.placement)}};
    part["compute_instances"] = Json::array();
    for (const gpu::ComputeInstance& compute : instance.compute_instances) {
      part["compute_instances"].push_back({{"id", compute.id.value()},
                                           {"profile_id", compute.profile_id.value()},
                                           {"placement", to_json(compute.placement)},
                                           {"uuid", compute.uuid.value()}});
    }
    json["instances"].push_back(std::move(part));
  }
  json["processes"] = Json::array();
  for (const gpu::GpuProcess& process : gpu.processes) {
    json["processes"].push_back(to_json(process));
  }
  return json;
}

Json to_json(const gpu::GpuInstanceProfile& profile) {
  Json json = {{"name", profile.name},
               {"id", profile.id.value()},
               {"slices", profile.slices},
               {"max_instances", profile.max_instances},
               {"memory_mib", profile.memory_mib},
               {"multiprocessors", profile.engines.multiprocessors},
               {"copy_engines", profile.engines.copy_engines},
               {"decoders", profile.engines.decoders},
               {"encoders", profile.engines.encoders},
               {"jpeg", profile.engines.jpeg},
               {"ofa", profile.engines.ofa}};
  json["placements"] = Json::array();
  for (const gpu::Placement& span : profile.placements) {
    json["placements"].push_back(fmt::format("{}:{}", span.start, span.size));
  }
  return json;
}

std::string driver_note(const gpu::DriverInfo& info) {
  return info.simulated ? fmt::format("simulated GPUs (driver {} imitated)", info.driver_version)
                        : fmt::format("driver {}, CUDA {}", info.driver_version, info.cuda_version);
}

}  // namespace septet::app
