#include "partition/doctor.h"

#include <gmock/gmock.h>

#include "gpu/simulated_driver.h"

namespace septet::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Doctor : public ::testing::Test {
 protected:
  void use(std::string_view model) {
    node_ = gpu::make_simulated_node(model).value();
    driver_ = std::make_unique<gpu::SimulatedDriver>(node_);
  }

  Examination examination() {
    Examination result;
    result.driver = driver_->info().value();
    result.simulate = "--simulate M ";
    for (unsigned i = 0; i < node_.gpus.size(); ++i) {
      result.gpus.push_back({i, driver_->observe(i), desired_, interrupted_});
    }
    return result;
  }

  std::vector<std::string> codes() {
    std::vector<std::string> words;
    for (const Finding& finding : diagnose(examination())) {
      EXPECT_FALSE(finding.what.empty());
      EXPECT_FALSE(finding.mend.empty());
      words.push_back(finding.code);
    }
    return words;
  }

  gpu::SimulatedNode node_;
  std::unique_ptr<gpu::SimulatedDriver> driver_;
  std::optional<Layout> desired_;
  bool interrupted_ = false;
};

TEST_F(Doctor, FindsNothingOnAFreshGpu) {
  use("A100-SXM4-40GBx2");

  EXPECT_THAT(codes(), ElementsAre());
}

TEST_F(Doctor, FindsMigWithoutInstances) {
  use("A100-SXM4-40GB");
  ASSERT_TRUE(driver_->set_mig_mode(0, gpu::MigMode::kEnabled).ok());

  EXPECT_THAT(codes(), ElementsAre("instances_missing"));
  EXPECT_THAT(diagnose(examination())[0].mend,
              HasSubstr("septet --simulate M apply 1g.5gb:1 --gpu 0"));
}

TEST_F(Doctor, FindsInstancesWithoutComputeInstances) {
  use("A100-SXM4-40GB");
  desired_.emplace();
  ASSERT_TRUE(driver_->set_mig_mode(0, gpu::MigMode::kEnabled).ok());
  ASSERT_TRUE(driver_->create_gpu_instance(0, gpu::ProfileId(9), {4, 4}).ok());
  desired_ = layout_of(driver_->observe(0).value());

  EXPECT_THAT(codes(), ElementsAre("compute_instance_missing"));
  EXPECT_EQ(diagnose(examination())[0].mend, "nvidia-smi mig -i 0 -gi 1 -cci");
}

TEST_F(Doctor, NamesWhoHoldsAPendingMode) {
  use("A100-SXM4-40GB");
  gpu::SimulatedClient client;
  client.pid = 4242;
  client.name = "jupyter";
  ASSERT_EQ(attach_client(node_.gpus[0], client), gpu::NvmlCode::kSuccess);
  ASSERT_FALSE(driver_->set_mig_mode(0, gpu::MigMode::kEnabled).ok());

  EXPECT_THAT(codes(), ElementsAre("mode_pending"));
  EXPECT_THAT(diagnose(examination())[0].what, HasSubstr("process 4242 (jupyter)"));
}

TEST_F(Doctor, SaysThatAPendingModeWaitsForAReset) {
  use("A100-SXM4-40GB");
  node_.gpus[0].config.virtual_machine = true;
  ASSERT_FALSE(driver_->set_mig_mode(0, gpu::MigMode::kEnabled).ok());

  EXPECT_THAT(codes(), ElementsAre("mode_pending"));
  EXPECT_THAT(diagnose(examination())[0].mend, HasSubstr("nvidia-smi --gpu-reset -i 0"));
}

TEST_F(Doctor, NoticesAnIdleLayoutThatNobodyClaims) {
  use("A30");
  ASSERT_TRUE(driver_->set_mig_mode(0, gpu::MigMode::kEnabled).ok());
  const auto instance = driver_->create_gpu_instance(0, gpu::ProfileId(5), {0, 2}).value();
  ASSERT_TRUE(driver_->create_compute_instance(0, instance.id, gpu::ProfileId(1)).ok());

  EXPECT_THAT(codes(), ElementsAre("layout_unclaimed"));
  desired_ = layout_of(driver_->observe(0).value());
  EXPECT_THAT(codes(), ElementsAre());
}

TEST_F(Doctor, FindsDriftFromTheDesiredLayout) {
  use("A100-SXM4-40GB");
  desired_.emplace();
  desired_->mode = gpu::MigMode::kEnabled;
  desired_->instances.push_back({gpu::ProfileId(9), "3g.20gb", {4, 4}, {3}});

  EXPECT_THAT(codes(), ElementsAre("layout_drift"));
  EXPECT_THAT(diagnose(examination())[0].what, HasSubstr("wanted is 3g.20gb@4"));
}

TEST_F(Doctor, FindsAnInterruptedChange) {
  use("A100-SXM4-40GB");
  interrupted_ = true;

  EXPECT_THAT(codes(), ElementsAre("change_interrupted"));
}

TEST_F(Doctor, GoesOnBehindALostGpu) {
  use("A100-SXM4-40GBx2");
  node_.gpus[0].lost = true;
  ASSERT_TRUE(driver_->set_mig_mode(1, gpu::MigMode::kEnabled).ok());

  EXPECT_THAT(codes(), ElementsAre("gpu_unreadable", "instances_missing"));
}

TEST_F(Doctor, FindsAnOldDriver) {
  use("H200");
  node_.config.driver_version = "535.161.08";

  EXPECT_THAT(codes(), ElementsAre("driver_too_old"));
}

TEST_F(Doctor, JudgesTheMachine) {
  use("A100-SXM4-40GB");
  Examination real = examination();
  real.driver.simulated = false;
  real.host.kernel_driver = "535.1";
  real.host.may_open_gpu = false;
  std::vector<std::string> words;
  for (const Finding& finding : diagnose(real)) {
    words.push_back(finding.code);
  }
  EXPECT_THAT(words, ElementsAre("driver_version_mismatch", "device_permission", "mig_permission"));

  Examination none;
  none.driver_error = make_error(ErrorKind::kPrecondition, "no driver", "install it");
  none.host.nouveau_module = true;
  EXPECT_EQ(diagnose(none)[0].code, "nouveau_loaded");
  EXPECT_EQ(diagnose(none)[1].code, "driver_unavailable");
}

}  // namespace
}  // namespace septet::partition
