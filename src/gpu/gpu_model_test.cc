#include "gpu/gpu_model.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/text.h"

namespace septet::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const GpuModel& model(std::string_view name) {
  const auto found = find_gpu_model(name);
  CHECK(found.ok());
  return **found;
}

TEST(GpuModel, IsFoundByKeyProductNameAndChipName) {
  EXPECT_EQ(model("A100-SXM4-40GB").key, "A100-SXM4-40GB");
  EXPECT_EQ(model("a100-sxm4-40gb").key, "A100-SXM4-40GB");
  EXPECT_EQ(model("NVIDIA A100-PCIE-40GB").key, "A100-SXM4-40GB");
  EXPECT_EQ(model("H100 80GB HBM3").key, "H100-SXM5-80GB");
  EXPECT_EQ(model("H200-141GB").key, "H200");
}

TEST(GpuModel, UnknownNameListsWhatExistsAndTheNearest) {
  const auto found = find_gpu_model("A100-SXM4-41GB");

  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(found.error().text(), HasSubstr("RTX-PRO-6000"));
  EXPECT_THAT(found.error().hint, HasSubstr("did you mean A100-SXM4-40GB?"));
}

TEST(GpuModel, EveryProfileFitsItsGpu) {
  for (const GpuModel& gpu : gpu_models()) {
    EXPECT_EQ(gpu.mig.supported, !gpu.profiles.empty()) << gpu.key;
    for (const GpuInstanceProfile& profile : gpu.profiles) {
      SCOPED_TRACE(gpu.key + " " + profile.name);
      EXPECT_FALSE(profile.placements.empty());
      EXPECT_GE(profile.placements.size(), profile.max_instances == 1 ? 1U : profile.max_instances);
      EXPECT_LE(profile.slices, gpu.compute_slices);
      EXPECT_GT(profile.memory_mib, 0);
      EXPECT_LE(profile.memory_mib, gpu.memory_total_mib);
      EXPECT_TRUE(std::is_sorted(profile.placements.begin(), profile.placements.end()));
      for (const Placement& placement : profile.placements) {
        EXPECT_LE(placement.end(), gpu.placement_units);
      }
    }
  }
}

TEST(GpuModel, NameSaysTheMemoryThatTheUnitsAreWorth) {
  // GB = round_half_away(ceil8(share of memory) * total GiB), as go-nvlib derives the name.
  for (const GpuModel& gpu : gpu_models()) {
    const double total_gib = std::ceil(static_cast<double>(gpu.memory_total_mib) / 1024);
    for (const GpuInstanceProfile& profile : gpu.profiles) {
      const double share =
          static_cast<double>(profile.memory_mib) / static_cast<double>(gpu.memory_total_mib);
      const long gigabytes = std::lround(std::ceil(share * 8) / 8 * total_gib);
      const auto fields = split(profile.name, '.');
      EXPECT_TRUE(fields[1].starts_with(std::to_string(gigabytes) + "gb"))
          << gpu.key << " " << profile.name << ": " << gigabytes;
    }
  }
}

std::vector<std::string> compute_names(const GpuModel& gpu, unsigned profile_id) {
  std::vector<std::string> names;
  for (const auto& compute : compute_profiles(gpu, *find_profile(gpu, ProfileId(profile_id)))) {
    names.push_back(compute.name + " x" + std::to_string(compute.max_instances));
  }
  return names;
}

TEST(GpuModel, OffersComputeProfilesBySlices) {
  const GpuModel& a100 = model("A100-SXM4-40GB");

  EXPECT_THAT(compute_names(a100, 19), ElementsAre("1g.5gb x1"));
  EXPECT_THAT(compute_names(a100, 14), ElementsAre("1c.2g.10gb x2", "2g.10gb x1"));
  EXPECT_THAT(compute_names(a100, 9), ElementsAre("1c.3g.20gb x3", "2c.3g.20gb x1", "3g.20gb x1"));
  EXPECT_THAT(compute_names(a100, 0), ElementsAre("1c.7g.40gb x7", "2c.7g.40gb x3", "3c.7g.40gb x2",
                                                  "4c.7g.40gb x1", "7g.40gb x1"));
}

TEST(GpuModel, FullComputeProfileHasAllProcessorsOfItsInstance) {
  const GpuModel& h100 = model("H100-SXM5-80GB");
  const auto profiles = compute_profiles(h100, *find_profile(h100, ProfileId(9)));

  EXPECT_EQ(profiles.back().engines.multiprocessors, 60U);
  EXPECT_EQ(profiles.front().engines.multiprocessors, 16U);
}

}  // namespace
}  // namespace septet::gpu
