#include "gpu/simulated_gpu.h"

#include <gmock/gmock.h>

#include "base/prng.h"
#include "gpu/simulated_instances.h"

namespace septet::gpu {
namespace {

using ::testing::ElementsAre;

SimulatedGpu fresh(const std::string& model) {
  SimulatedGpuConfig config;
  config.model = model;
  return make_simulated_gpu(config);
}

SimulatedGpu enabled(const std::string& model) {
  SimulatedGpu gpu = fresh(model);
  CHECK(set_mig_mode(gpu, MigMode::kEnabled).activation == NvmlCode::kSuccess);
  return gpu;
}

NvmlCode create(SimulatedGpu& gpu, unsigned profile, std::optional<Placement> place = {}) {
  GpuInstance created;
  return create_gpu_instance(gpu, ProfileId(profile), place, created);
}

// Creates instances of these profiles, the driver choosing, and says where they went.
std::vector<unsigned> starts_of(SimulatedGpu gpu, const std::vector<unsigned>& profiles) {
  std::vector<unsigned> starts;
  for (const unsigned profile : profiles) {
    GpuInstance created;
    CHECK(create_gpu_instance(gpu, ProfileId(profile), {}, created) == NvmlCode::kSuccess);
    starts.push_back(created.placement.start);
  }
  return starts;
}

TEST(SimulatedGpu, PlacesAsThePublishedSequencesOfTheDriver) {
  const SimulatedGpu gpu = enabled("H100-SXM5-80GB");

  EXPECT_THAT(starts_of(gpu, {19, 19, 19, 19, 19, 19, 19}), ElementsAre(6, 4, 5, 0, 1, 2, 3));
  EXPECT_THAT(starts_of(gpu, {9, 19, 14, 19}), ElementsAre(4, 0, 2, 1));
  EXPECT_THAT(starts_of(gpu, {9, 9}), ElementsAre(4, 0));
}

TEST(SimulatedGpu, NumbersInstancesAsTheChipDoes) {
  SimulatedGpu h100 = enabled("H100-SXM5-80GB");
  SimulatedGpu a100 = enabled("A100-SXM4-40GB");
  std::vector<unsigned> h100_ids;
  std::vector<unsigned> a100_ids;
  for (int i = 0; i < 7; ++i) {
    GpuInstance created;
    ASSERT_EQ(create_gpu_instance(h100, ProfileId(19), {}, created), NvmlCode::kSuccess);
    h100_ids.push_back(created.id.value());
  }
  for (const Placement place : {Placement{4, 4}, Placement{2, 2}, Placement{0, 1}}) {
    GpuInstance created;
    const unsigned profile = place.size == 4 ? 9 : place.size == 2 ? 14 : 19;
    ASSERT_EQ(create_gpu_instance(a100, ProfileId(profile), place, created), NvmlCode::kSuccess);
    a100_ids.push_back(created.id.value());
  }

  EXPECT_THAT(h100_ids, ElementsAre(13, 11, 12, 7, 8, 9, 10));
  EXPECT_THAT(a100_ids, ElementsAre(1, 6, 11));
}

TEST(SimulatedGpu, RefusesTheEighthSmallInstance) {
  SimulatedGpu gpu = enabled("A100-SXM4-40GB");
  for (int i = 0; i < 7; ++i) {
    ASSERT_EQ(create(gpu, 19), NvmlCode::kSuccess);
  }

  EXPECT_EQ(create(gpu, 19), NvmlCode::kInsufficientResources);
}

TEST(SimulatedGpu, TellsTakenSpansFromIllegalOnes) {
  SimulatedGpu gpu = enabled("A100-SXM4-40GB");
  ASSERT_EQ(create(gpu, 14, Placement{0, 2}), NvmlCode::kSuccess);

  EXPECT_EQ(create(gpu, 19, Placement{0, 1}), NvmlCode::kInsufficientResources);
  EXPECT_EQ(create(gpu, 19, Placement{7, 1}), NvmlCode::kInvalidArgument);
  EXPECT_EQ(create(gpu, 99), NvmlCode::kInvalidArgument);
  EXPECT_EQ(create(gpu, 19, Placement{2, 1}), NvmlCode::kSuccess);
}

TEST(SimulatedGpu, CountsTheRemainingCapacity) {
  SimulatedGpu gpu = enabled("A100-SXM4-40GB");
  ASSERT_EQ(create(gpu, 9, Placement{4, 4}), NvmlCode::kSuccess);
  ASSERT_EQ(create(gpu, 14, Placement{0, 2}), NvmlCode::kSuccess);
  ASSERT_EQ(create(gpu, 19, Placement{2, 1}), NvmlCode::kSuccess);
  std::vector<unsigned> left;
  for (const GpuInstanceProfile& profile : profiles_of(gpu)) {
    left.push_back(*remaining_capacity(gpu, profile.id));
  }

  EXPECT_THAT(left, ElementsAre(1, 1, 0, 0, 0, 0, 0));
}

TEST(SimulatedGpu, AllMediaEnginesLeaveNoneToOthers) {
  SimulatedGpu gpu = enabled("RTX-PRO-6000");
  ASSERT_EQ(create(gpu, 65), NvmlCode::kSuccess);  // 1g.24gb+me.all

  EXPECT_EQ(remaining_capacity(gpu, ProfileId(14)), 0U);  // 1g.24gb has a decoder
  EXPECT_EQ(create(gpu, 14), NvmlCode::kInsufficientResources);
  EXPECT_EQ(create(gpu, 67), NvmlCode::kSuccess);  // 1g.24gb-me has none
}

TEST(SimulatedGpu, ModeStaysPendingWhileAClientHoldsTheGpu) {
  SimulatedGpu gpu = fresh("A100-SXM4-40GB");
  SimulatedClient client;
  client.pid = 4242;
  ASSERT_EQ(attach_client(gpu, client), NvmlCode::kSuccess);

  const ModeAnswer answer = set_mig_mode(gpu, MigMode::kEnabled);

  EXPECT_EQ(answer.code, NvmlCode::kSuccess);
  EXPECT_EQ(answer.activation, NvmlCode::kInUse);
  EXPECT_FALSE(gpu.mig_current);
  EXPECT_TRUE(gpu.mig_pending);
  detach_client(gpu, 4242);
  EXPECT_EQ(set_mig_mode(gpu, MigMode::kEnabled).activation, NvmlCode::kSuccess);
  EXPECT_TRUE(gpu.mig_current);
}

TEST(SimulatedGpu, ModeInAVirtualMachineWaitsForAReboot) {
  SimulatedGpuConfig config;
  config.model = "A100-SXM4-40GB";
  config.virtual_machine = true;
  SimulatedGpu gpu = make_simulated_gpu(config);

  EXPECT_EQ(set_mig_mode(gpu, MigMode::kEnabled).activation, NvmlCode::kResetRequired);
  EXPECT_FALSE(gpu.mig_current);
  reboot(gpu);
  EXPECT_TRUE(gpu.mig_current);
}

TEST(SimulatedGpu, RebootKeepsTheModeOnAmpereAndLosesItOnHopper) {
  SimulatedGpu a100 = enabled("A100-SXM4-40GB");
  SimulatedGpu h100 = enabled("H100-SXM5-80GB");
  ASSERT_EQ(create(a100, 19), NvmlCode::kSuccess);

  reboot(a100);
  reboot(h100);

  EXPECT_TRUE(a100.mig_current);
  EXPECT_TRUE(a100.instances.empty());
  EXPECT_FALSE(h100.mig_current);
}

TEST(SimulatedGpu, RefusesMigWhereTheChipHasNone) {
  SimulatedGpu gpu = fresh("T4");

  EXPECT_EQ(set_mig_mode(gpu, MigMode::kEnabled).code, NvmlCode::kNotSupported);
  EXPECT_EQ(create(gpu, 19), NvmlCode::kNotSupported);
}

TEST(SimulatedGpu, DestroysFromTheInsideOut) {
  SimulatedGpu gpu = enabled("A100-SXM4-40GB");
  GpuInstance instance;
  ComputeInstance compute;
  ASSERT_EQ(create_gpu_instance(gpu, ProfileId(14), {}, instance), NvmlCode::kSuccess);
  ASSERT_EQ(create_compute_instance(gpu, instance.id, ProfileId(1), {}, compute),
            NvmlCode::kSuccess);

  EXPECT_EQ(destroy_gpu_instance(gpu, instance.id), NvmlCode::kInUse);
  EXPECT_EQ(destroy_compute_instance(gpu, instance.id, compute.id), NvmlCode::kSuccess);
  EXPECT_EQ(destroy_gpu_instance(gpu, instance.id), NvmlCode::kSuccess);
  EXPECT_EQ(destroy_gpu_instance(gpu, instance.id), NvmlCode::kNotFound);
}

TEST(SimulatedGpu, KeepsABusyComputeInstance) {
  SimulatedGpu gpu = enabled("A100-SXM4-40GB");
  GpuInstance instance;
  ComputeInstance compute;
  ASSERT_EQ(create_gpu_instance(gpu, ProfileId(19), {}, instance), NvmlCode::kSuccess);
  ASSERT_EQ(create_compute_instance(gpu, instance.id, ProfileId(0), {}, compute),
            NvmlCode::kSuccess);
  SimulatedClient client;
  client.pid = 4242;
  client.gpu_instance = instance.id.value();
  client.compute_instance = compute.id.value();
  ASSERT_EQ(attach_client(gpu, client), NvmlCode::kSuccess);

  EXPECT_EQ(destroy_compute_instance(gpu, instance.id, compute.id), NvmlCode::kInUse);
  detach_client(gpu, 4242);
  EXPECT_EQ(destroy_compute_instance(gpu, instance.id, compute.id), NvmlCode::kSuccess);
}

TEST(SimulatedGpu, GivesEveryMigDeviceANewUuidAndReusesIds) {
  SimulatedGpu gpu = enabled("A100-SXM4-40GB");
  GpuInstance first;
  GpuInstance second;
  ComputeInstance one;
  ComputeInstance two;
  ASSERT_EQ(create_gpu_instance(gpu, ProfileId(19), {}, first), NvmlCode::kSuccess);
  ASSERT_EQ(create_compute_instance(gpu, first.id, ProfileId(0), {}, one), NvmlCode::kSuccess);
  ASSERT_EQ(destroy_compute_instance(gpu, first.id, one.id), NvmlCode::kSuccess);
  ASSERT_EQ(destroy_gpu_instance(gpu, first.id), NvmlCode::kSuccess);
  ASSERT_EQ(create_gpu_instance(gpu, ProfileId(19), {}, second), NvmlCode::kSuccess);
  ASSERT_EQ(create_compute_instance(gpu, second.id, ProfileId(0), {}, two), NvmlCode::kSuccess);

  EXPECT_EQ(first.id, second.id);
  EXPECT_NE(one.uuid, two.uuid);
  EXPECT_THAT(one.uuid.value(),
              ::testing::MatchesRegex(
                  "MIG-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
}

TEST(SimulatedGpu, ComputeInstancesShareTheSlicesOfTheirInstance) {
  SimulatedGpu gpu = enabled("A100-SXM4-40GB");
  GpuInstance instance;
  ComputeInstance compute;
  ASSERT_EQ(create_gpu_instance(gpu, ProfileId(9), {}, instance), NvmlCode::kSuccess);
  ASSERT_EQ(create_compute_instance(gpu, instance.id, ProfileId(1), {}, compute),
            NvmlCode::kSuccess);  // 2c
  EXPECT_EQ(create_compute_instance(gpu, instance.id, ProfileId(2), {}, compute),
            NvmlCode::kInsufficientResources);  // 3c
  EXPECT_EQ(create_compute_instance(gpu, instance.id, ProfileId(0), {}, compute),
            NvmlCode::kSuccess);  // 1c
  EXPECT_EQ(compute.placement, (Placement{2, 1}));
  EXPECT_EQ(create_compute_instance(gpu, instance.id, ProfileId(4), {}, compute),
            NvmlCode::kInvalidArgument);  // 7c
}

TEST(SimulatedGpu, OverridesChangeWhatIsReportedAndNotWhatIsEnforced) {
  SimulatedGpuConfig config;
  config.model = "A30";
  ProfileOverride change;
  change.profile_id = 14;
  change.reported_id = 19;
  change.name = "1g.3gb";
  change.reported_max_instances = 7;
  config.overrides = {change};
  SimulatedGpu gpu = make_simulated_gpu(config);
  ASSERT_EQ(set_mig_mode(gpu, MigMode::kEnabled).activation, NvmlCode::kSuccess);

  EXPECT_EQ(profiles_of(gpu)[0].name, "1g.3gb");
  EXPECT_EQ(profiles_of(gpu)[0].max_instances, 7U);
  EXPECT_EQ(create(gpu, 14), NvmlCode::kInvalidArgument);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(create(gpu, 19), NvmlCode::kSuccess);
  }
  EXPECT_EQ(create(gpu, 19), NvmlCode::kInsufficientResources);
}

TEST(SimulatedGpu, KeepsItsInvariantsUnderRandomCalls) {
  for (const GpuModel& model : gpu_models()) {
    if (!model.mig.supported) {
      continue;
    }
    SimulatedGpu gpu = enabled(model.key);
    Prng prng(7);
    for (int i = 0; i < 400; ++i) {
      const auto profiles = profiles_of(gpu);
      const ProfileId profile = profiles[prng.below(profiles.size())].id;
      const GpuInstanceId instance(static_cast<unsigned>(prng.below(16)));
      GpuInstance created;
      ComputeInstance compute;
      const auto before = *remaining_capacity(gpu, profile);
      if (prng.chance(0.4)) {
        const auto code = create_gpu_instance(gpu, profile, {}, created);
        EXPECT_EQ(code == NvmlCode::kSuccess, before > 0) << model.key;
      } else if (prng.chance(0.5)) {
        static_cast<void>(create_compute_instance(
            gpu, instance, ProfileId(static_cast<unsigned>(prng.below(8))), {}, compute));
      } else if (prng.chance(0.5)) {
        static_cast<void>(destroy_compute_instance(
            gpu, instance, ComputeInstanceId(static_cast<unsigned>(prng.below(3)))));
      } else {
        static_cast<void>(destroy_gpu_instance(gpu, instance));
      }
      ASSERT_EQ(broken_invariant(gpu), "") << model.key << " after call " << i;
    }
  }
}

}  // namespace
}  // namespace septet::gpu
