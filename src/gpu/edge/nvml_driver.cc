#include "gpu/edge/nvml_driver.h"

#include <fmt/format.h>

#include <array>

#include "gpu/edge/nvml_reader.h"

namespace septet::gpu {
namespace {

// Reads again when an instance went away between two calls; this often, then the error is told.
constexpr int kReadAttempts = 3;

NvmlCode code_of(abi::Return code) { return static_cast<NvmlCode>(code); }

Result<Ok> done_or(abi::Return code, const std::string& what) {
  if (code != 0) {
    return nvml_error(code_of(code), what);
  }
  return Ok{};
}

Error missing(const std::string& what) {
  return nvml_error(NvmlCode::kFunctionNotFound, what + " with this driver");
}

}  // namespace

Result<std::unique_ptr<GpuDriver>> NvmlDriver::open(const std::string& path) {
  auto library = NvmlLibrary::open(path);
  if (!library.ok()) {
    return library.error();
  }
  return std::unique_ptr<GpuDriver>(new NvmlDriver(std::move(library).value()));
}

Result<abi::Device> NvmlDriver::device_at(unsigned index) const {
  abi::Device device = nullptr;
  const abi::Return code = nvml_.nvmlDeviceGetHandleByIndex_v2(index, &device);
  if (code_of(code) == NvmlCode::kInvalidArgument) {
    return make_error(ErrorKind::kNotFound, fmt::format("there is no GPU {}", index),
                      "septet gpus lists what there is");
  }
  SEPTET_TRY(done_or(code, fmt::format("open GPU {}", index)));
  return device;
}

Result<abi::GpuInstance> NvmlDriver::instance_at(unsigned index, GpuInstanceId instance) const {
  const auto device = device_at(index);
  if (!device.ok()) {
    return device.error();
  }
  const std::string what = fmt::format("find GPU instance {} on GPU {}", instance.value(), index);
  if (nvml_.nvmlDeviceGetGpuInstanceById == nullptr) {
    return missing(what);
  }
  abi::GpuInstance handle = nullptr;
  SEPTET_TRY(done_or(nvml_.nvmlDeviceGetGpuInstanceById(*device, instance.value(), &handle), what));
  return handle;
}

Result<DriverInfo> NvmlDriver::info() {
  std::array<char, abi::kVersionSize> driver{};
  std::array<char, abi::kVersionSize> nvml{};
  int cuda = 0;
  SEPTET_TRY(done_or(nvml_.nvmlSystemGetDriverVersion(driver.data(), driver.size()),
                     "read the driver's version"));
  SEPTET_TRY(
      done_or(nvml_.nvmlSystemGetNVMLVersion(nvml.data(), nvml.size()), "read NVML's version"));
  SEPTET_TRY(done_or(nvml_.nvmlSystemGetCudaDriverVersion(&cuda), "read CUDA's version"));
  DriverInfo info;
  info.driver_version = driver.data();
  info.nvml_version = nvml.data();
  info.cuda_version = fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10);
  info.library = library_->path();
  info.simulated = nvml_.septet_simnvml_version != nullptr;
  return info;
}

Result<unsigned> NvmlDriver::gpu_count() {
  unsigned count = 0;
  SEPTET_TRY(done_or(nvml_.nvmlDeviceGetCount_v2(&count), "count the GPUs"));
  return count;
}

Result<GpuState> NvmlDriver::observe(unsigned index) {
  const auto device = device_at(index);
  if (!device.ok()) {
    return device.error();
  }
  NvmlCode code = NvmlCode::kSuccess;
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    GpuState state;
    state.index = index;
    code = NvmlReader(nvml_, *device).read(state);
    if (code == NvmlCode::kSuccess) {
      return state;
    }
    if (code != NvmlCode::kNotFound) {
      break;
    }
  }
  return nvml_error(code, fmt::format("read GPU {}", index));
}

Result<std::vector<ComputeInstanceProfile>> NvmlDriver::compute_profiles(unsigned index,
                                                                         GpuInstanceId instance) {
  const auto handle = instance_at(index, instance);
  if (!handle.ok()) {
    return handle.error();
  }
  std::vector<ComputeInstanceProfile> profiles;
  const NvmlCode code = NvmlReader(nvml_, nullptr).read_compute_profiles(*handle, profiles);
  if (code != NvmlCode::kSuccess) {
    return nvml_error(code, fmt::format("list compute profiles of GPU instance {} on GPU {}",
                                        instance.value(), index));
  }
  return profiles;
}

Result<unsigned> NvmlDriver::remaining_capacity(unsigned index, ProfileId profile) {
  const auto device = device_at(index);
  if (!device.ok()) {
    return device.error();
  }
  const std::string what =
      fmt::format("ask GPU {} for the capacity of profile {}", index, profile.value());
  if (nvml_.nvmlDeviceGetGpuInstanceRemainingCapacity == nullptr) {
    return missing(what);
  }
  unsigned count = 0;
  SEPTET_TRY(done_or(
      nvml_.nvmlDeviceGetGpuInstanceRemainingCapacity(*device, profile.value(), &count), what));
  return count;
}

Result<Ok> NvmlDriver::set_mig_mode(unsigned index, MigMode mode) {
  const auto device = device_at(index);
  if (!device.ok()) {
    return device.error();
  }
  const bool enable = mode == MigMode::kEnabled;
  const std::string what = fmt::format("{} MIG on GPU {}", enable ? "enable" : "disable", index);
  if (nvml_.nvmlDeviceSetMigMode == nullptr) {
    return missing(what);
  }
  abi::Return activation = 0;
  SEPTET_TRY(done_or(nvml_.nvmlDeviceSetMigMode(*device, enable ? 1 : 0, &activation), what));
  return done_or(activation, what + " now, the mode is pending");
}

Result<GpuInstance> NvmlDriver::create_gpu_instance(unsigned index, ProfileId profile,
                                                    Placement placement) {
  const auto device = device_at(index);
  if (!device.ok()) {
    return device.error();
  }
  const std::string what = fmt::format("create a GPU instance of profile {} at {}:{} on GPU {}",
                                       profile.value(), placement.start, placement.size, index);
  if (nvml_.nvmlDeviceCreateGpuInstanceWithPlacement == nullptr) {
    return missing(what);
  }
  const abi::Placement span{placement.start, placement.size};
  abi::GpuInstance handle = nullptr;
  SEPTET_TRY(done_or(
      nvml_.nvmlDeviceCreateGpuInstanceWithPlacement(*device, profile.value(), &span, &handle),
      what));
  GpuInstance created;
  SEPTET_TRY(
      done_or(static_cast<abi::Return>(NvmlReader(nvml_, *device).read_instance(handle, created)),
              what + " and read it back"));
  return created;
}

Result<Ok> NvmlDriver::destroy_gpu_instance(unsigned index, GpuInstanceId instance) {
  const auto handle = instance_at(index, instance);
  if (!handle.ok()) {
    return handle.error();
  }
  return done_or(nvml_.nvmlGpuInstanceDestroy(*handle),
                 fmt::format("destroy GPU instance {} on GPU {}", instance.value(), index));
}

Result<ComputeInstance> NvmlDriver::create_compute_instance(unsigned index, GpuInstanceId instance,
                                                            ProfileId profile) {
  const auto parent = instance_at(index, instance);
  const auto device = device_at(index);
  if (!parent.ok() || !device.ok()) {
    return parent.ok() ? device.error() : parent.error();
  }
  const std::string what =
      fmt::format("create a compute instance of profile {} in GPU instance {} on GPU {}",
                  profile.value(), instance.value(), index);
  abi::ComputeInstance handle = nullptr;
  SEPTET_TRY(
      done_or(nvml_.nvmlGpuInstanceCreateComputeInstance(*parent, profile.value(), &handle), what));
  ComputeInstance created;
  const NvmlCode code = NvmlReader(nvml_, *device).read_compute_instance(handle, created, instance);
  SEPTET_TRY(done_or(static_cast<abi::Return>(code), what + " and read it back"));
  return created;
}

Result<Ok> NvmlDriver::destroy_compute_instance(unsigned index, GpuInstanceId instance,
                                                ComputeInstanceId compute_instance) {
  const auto parent = instance_at(index, instance);
  if (!parent.ok()) {
    return parent.error();
  }
  const std::string what = fmt::format("destroy compute instance {} of GPU instance {} on GPU {}",
                                       compute_instance.value(), instance.value(), index);
  abi::ComputeInstance handle = nullptr;
  SEPTET_TRY(done_or(
      nvml_.nvmlGpuInstanceGetComputeInstanceById(*parent, compute_instance.value(), &handle),
      what));
  return done_or(nvml_.nvmlComputeInstanceDestroy(handle), what);
}

}  // namespace septet::gpu
