#include "agent/slice_share.h"

#include <gtest/gtest.h>

namespace septet::agent {
namespace {

constexpr std::int64_t kGib = 1LL << 30;

gpu::GpuInstanceProfile profile(const char* name, unsigned slices, std::int64_t memory_mib) {
  gpu::GpuInstanceProfile result;
  result.name = name;
  result.slices = slices;
  result.memory_mib = memory_mib;
  return result;
}

// An A100 with round numbers.
gpu::GpuState device() {
  gpu::GpuState state;
  state.memory_total_mib = 40960;
  state.profiles = {profile("1g.5gb", 1, 5120), profile("3g.20gb", 3, 20480),
                    profile("7g.40gb", 7, 40960)};
  return state;
}

TEST(SliceShare, IsTheSlicesPartOfAllProcessors) {
  const SliceShare share = slice_share(device(), device().profiles[1], {.cpus = 14});

  EXPECT_DOUBLE_EQ(share.cpus, 6);
  EXPECT_EQ(share.period, milliseconds(10));
}

TEST(SliceShare, SevenSlicesTogetherAreTheWholeDevice) {
  const MachineSize machine{.cpus = 2, .memory_bytes = 100 * kGib};

  EXPECT_DOUBLE_EQ(7 * slice_share(device(), device().profiles[0], machine).cpus,
                   device_share(device(), machine).cpus);
}

TEST(SliceShare, ALongerPeriodAndAFloorKeepATinyShareLegal) {
  const SliceShare small = slice_share(device(), device().profiles[0], {.cpus = 0.5});
  EXPECT_EQ(small.period, milliseconds(20));
  EXPECT_DOUBLE_EQ(small.cpus, 0.5 / 7);

  const SliceShare tiny = slice_share(device(), device().profiles[0], {.cpus = 0.1});
  EXPECT_DOUBLE_EQ(tiny.cpus, 0.05);  // 1 ms of 20 ms
}

TEST(SliceShare, MemoryIsTheProfilesPartOfTheGpusMemoryWhereTheMachineHasThatMuch) {
  const MachineSize large{.cpus = 2, .memory_bytes = 100 * kGib};
  const MachineSize small{.cpus = 2, .memory_bytes = 20 * kGib};

  EXPECT_EQ(slice_share(device(), device().profiles[0], large).memory_bytes, 5 * kGib);
  EXPECT_EQ(slice_share(device(), device().profiles[0], small).memory_bytes, 2 * kGib);
  EXPECT_EQ(device_share(device(), small).memory_bytes, 16 * kGib);
}

TEST(SmallestProfile, IsTheOneWithTheFewestSlicesThenTheLeastMemory) {
  gpu::GpuState state = device();
  state.profiles.push_back(profile("1g.10gb", 1, 10240));

  EXPECT_EQ(smallest_profile(state)->name, "1g.5gb");
  EXPECT_EQ(smallest_profile(gpu::GpuState{}), nullptr);
}

}  // namespace
}  // namespace septet::agent
