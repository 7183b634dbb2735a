// mig-parted's checkpoint format:
//
//   {"Version":"v1","MigState":{"Devices":[{"UUID":"GPU-...","MigMode":1,"GpuInstances":[
//     {"ProfileID":2,"Placement":{"Start":4,"Size":4},"ComputeInstances":[
//       {"ProfileID":2,"EngProfileID":0}]}]}]}}
//
// ProfileID is NVML's enum, not the id; placements of compute instances are not kept.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "partition/edge/mig_parted_file.h"

namespace septet::partition {
namespace {

using Json = nlohmann::ordered_json;

// Slices of NVML's compute instance enum, by its value.
constexpr std::array<unsigned, 7> kComputeSlices = {1, 2, 3, 4, 7, 8, 6};

Json compute_json(unsigned slices) {
  const auto* found = std::find(kComputeSlices.begin(), kComputeSlices.end(), slices);
  return {{"ProfileID", found - kComputeSlices.begin()}, {"EngProfileID", 0}};
}

Json device_json(const gpu::GpuState& state) {
  Json instances = Json::array();
  for (const LayoutInstance& instance : layout_of(state).instances) {
    const auto profile =
        std::find_if(state.profiles.begin(), state.profiles.end(),
                     [&](const auto& candidate) { return candidate.id == instance.profile_id; });
    Json compute = Json::array();
    for (const unsigned slices : instance.compute) {
      compute.push_back(compute_json(slices));
    }
    instances.push_back(
        {{"ProfileID", profile == state.profiles.end() ? 0 : profile->nvml_enum},
         {"Placement", {{"Start", instance.placement.start}, {"Size", instance.placement.size}}},
         {"ComputeInstances", std::move(compute)}});
  }
  return {{"UUID", state.uuid.value()},
          {"MigMode", state.mig_current == gpu::MigMode::kEnabled ? 1 : 0},
          {"GpuInstances", std::move(instances)}};
}

// Throws; only called below the catch of read_checkpoint().
LayoutInstance instance_from(const Json& json, const gpu::GpuState& state) {
  const unsigned number = json.at("ProfileID").get<unsigned>();
  const auto profile =
      std::find_if(state.profiles.begin(), state.profiles.end(),
                   [&](const auto& candidate) { return candidate.nvml_enum == number; });
  if (profile == state.profiles.end()) {
    throw std::runtime_error(
        fmt::format("GPU {} has no profile with the enum {}: this is the "
                    "checkpoint of another kind of GPU",
                    state.index, number));
  }
  LayoutInstance instance{profile->id, profile->name, {}, {}};
  instance.placement = {json.at("Placement").at("Start").get<unsigned>(),
                        json.at("Placement").at("Size").get<unsigned>()};
  const auto& legal = profile->placements;
  if (std::find(legal.begin(), legal.end(), instance.placement) == legal.end()) {
    throw std::runtime_error(fmt::format("{} cannot stand at {}:{}", profile->name,
                                         instance.placement.start, instance.placement.size));
  }
  for (const Json& compute : json.at("ComputeInstances")) {
    instance.compute.push_back(kComputeSlices.at(compute.at("ProfileID").get<std::size_t>()));
  }
  return instance;
}

CheckpointDevice device_from(const Json& json, const std::vector<gpu::GpuState>& states) {
  CheckpointDevice device{gpu::GpuUuid(json.at("UUID").get<std::string>()), {}};
  const auto state =
      std::find_if(states.begin(), states.end(),
                   [&](const gpu::GpuState& candidate) { return candidate.uuid == device.gpu; });
  if (state == states.end()) {
    throw std::runtime_error(fmt::format("there is no GPU {}", device.gpu.value()));
  }
  device.layout.mode =
      json.at("MigMode").get<int>() == 1 ? gpu::MigMode::kEnabled : gpu::MigMode::kDisabled;
  for (const Json& instance : json.at("GpuInstances")) {
    device.layout.instances.push_back(instance_from(instance, *state));
  }
  return device;
}

}  // namespace

std::string write_checkpoint(const std::vector<gpu::GpuState>& states) {
  Json devices = Json::array();
  for (const gpu::GpuState& state : states) {
    if (state.mig_current != gpu::MigMode::kUnsupported) {
      devices.push_back(device_json(state));
    }
  }
  const Json json = {{"Version", "v1"}, {"MigState", {{"Devices", std::move(devices)}}}};
  return json.dump() + "\n";
}

Result<std::vector<CheckpointDevice>> read_checkpoint(std::string_view text,
                                                      const std::string& file,
                                                      const std::vector<gpu::GpuState>& states) {
  try {
    const Json json = Json::parse(text);
    if (json.at("Version") != "v1") {
      throw std::runtime_error("the version is not v1");
    }
    std::vector<CheckpointDevice> devices;
    for (const Json& device : json.at("MigState").at("Devices")) {
      devices.push_back(device_from(device, states));
    }
    return devices;
  } catch (const std::exception& error) {
    return make_error(ErrorKind::kUsage, fmt::format("{}: {}", file, error.what()),
                      "no GPU was touched");
  }
}

}  // namespace septet::partition
