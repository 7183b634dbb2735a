#include "agent/slice_share.h"

#include <algorithm>

#include "base/check.h"

namespace septet::agent {
namespace {

constexpr double kUsableMemory = 0.8;
constexpr std::int64_t kMib = 1 << 20;
// The kernel refuses a quota below 1 ms; a longer period keeps small shares legal.
constexpr Duration kShortPeriod = milliseconds(10);
constexpr Duration kLongPeriod = milliseconds(20);
constexpr Duration kSmallestQuota = milliseconds(1);

SliceShare with_cpus(double cpus) {
  SliceShare share;
  share.period =
      cpus * to_seconds(kShortPeriod) < to_seconds(kSmallestQuota) ? kLongPeriod : kShortPeriod;
  share.cpus = std::max(cpus, to_seconds(kSmallestQuota) / to_seconds(share.period));
  return share;
}

double usable_memory(const gpu::GpuState& device, const MachineSize& machine) {
  return std::min(static_cast<double>(device.memory_total_mib * kMib),
                  kUsableMemory * static_cast<double>(machine.memory_bytes));
}

// Compute slices of the whole GPU: those of its largest profile.
unsigned total_slices(const gpu::GpuState& device) {
  unsigned slices = 1;
  for (const gpu::GpuInstanceProfile& profile : device.profiles) {
    slices = std::max(slices, profile.slices);
  }
  return slices;
}

}  // namespace

SliceShare device_share(const gpu::GpuState& device, const MachineSize& machine) {
  SliceShare share = with_cpus(machine.cpus);
  share.memory_bytes = static_cast<std::int64_t>(usable_memory(device, machine));
  return share;
}

SliceShare slice_share(const gpu::GpuState& device, const gpu::GpuInstanceProfile& profile,
                       const MachineSize& machine) {
  CHECK(device.memory_total_mib > 0);
  SliceShare share = with_cpus(machine.cpus * profile.slices / total_slices(device));
  const double part =
      static_cast<double>(profile.memory_mib) / static_cast<double>(device.memory_total_mib);
  share.memory_bytes = static_cast<std::int64_t>(usable_memory(device, machine) * part);
  return share;
}

const gpu::GpuInstanceProfile* smallest_profile(const gpu::GpuState& device) {
  const gpu::GpuInstanceProfile* smallest = nullptr;
  for (const gpu::GpuInstanceProfile& profile : device.profiles) {
    if (smallest == nullptr || profile.slices < smallest->slices ||
        (profile.slices == smallest->slices && profile.memory_mib < smallest->memory_mib)) {
      smallest = &profile;
    }
  }
  return smallest;
}

}  // namespace septet::agent
