// What the verbs about GPUs share: opening the driver, reading all GPUs, their JSON form.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/gpu_driver.h"
#include "output.h"

namespace septet::app {

struct GpuView {
  std::unique_ptr<gpu::GpuDriver> driver;
  gpu::DriverInfo info;
  std::vector<gpu::GpuState> gpus;  // those that the selector names
};

// `selectors` as gpu/selector.h says; empty means all.
Result<GpuView> read_gpus(const Globals& globals, const std::string& selectors);

const char* to_word(gpu::MigMode mode);  // "enabled", "disabled", "unsupported"
// "enabled", or "disabled, enabled pending".
std::string mode_text(const gpu::GpuState& gpu);

Json to_json(const gpu::DriverInfo& info);
Json to_json(const gpu::GpuState& gpu);  // without profiles
Json to_json(const gpu::GpuInstanceProfile& profile);

// The line that says what is simulated, for every table.
std::string driver_note(const gpu::DriverInfo& info);

}  // namespace septet::app
