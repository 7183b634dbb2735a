#include "gpu/selector.h"

#include <gmock/gmock.h>

#include "gpu/simulated_driver.h"

namespace septet::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Selector : public ::testing::Test {
 protected:
  Selector() {
    SimulatedNode node = make_simulated_node("A100-SXM4-40GBx2").value();
    SimulatedGpuConfig config;
    config.model = "A30";
    config.index = 2;
    node.gpus.push_back(make_simulated_gpu(config));
    SimulatedDriver driver(node);
    CHECK(driver.set_mig_mode(1, MigMode::kEnabled).ok());
    instance_ = driver.create_gpu_instance(1, ProfileId(14), {0, 2}).value();
    compute_ = driver.create_compute_instance(1, instance_.id, ProfileId(0)).value();
    for (unsigned i = 0; i < 3; ++i) {
      gpus_.push_back(driver.observe(i).value());
    }
  }

  std::vector<GpuState> gpus_;
  GpuInstance instance_;
  ComputeInstance compute_;
};

TEST_F(Selector, FindsAGpuByEveryName) {
  EXPECT_EQ(select_gpu(gpus_, "1").value(), 1U);
  EXPECT_EQ(select_gpu(gpus_, gpus_[1].uuid.value()).value(), 1U);
  EXPECT_EQ(select_gpu(gpus_, "00000000:0F:00.0").value(), 1U);
  EXPECT_EQ(select_gpu(gpus_, "0000:0f:00.0").value(), 1U);
  EXPECT_EQ(select_gpu(gpus_, "0f:00.0").value(), 1U);
  EXPECT_EQ(select_gpu(gpus_, "a30").value(), 2U);
}

TEST_F(Selector, RefusesUnknownAndAmbiguousNames) {
  EXPECT_EQ(select_gpu(gpus_, "7").error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(select_gpu(gpus_, "H100").error().message, HasSubstr("NVIDIA A30"));
  EXPECT_EQ(select_gpu(gpus_, "A100").error().kind, ErrorKind::kUsage);
  EXPECT_EQ(select_gpu(gpus_, "").error().kind, ErrorKind::kNotFound);
}

TEST_F(Selector, TakesListsAndAll) {
  EXPECT_THAT(select_gpus(gpus_, "2,0,2").value(), ElementsAre(0, 2));
  EXPECT_THAT(select_gpus(gpus_, "all").value(), ElementsAre(0, 1, 2));
  EXPECT_THAT(select_gpus(gpus_, "A100").value(), ElementsAre(0, 1));
  EXPECT_FALSE(select_gpus(gpus_, "0,9").ok());
}

TEST_F(Selector, FindsPartitions) {
  const std::string gi = std::to_string(instance_.id.value());
  const PartitionRef whole{1, instance_.id, std::nullopt};
  const PartitionRef part{1, instance_.id, compute_.id};

  EXPECT_EQ(select_partition(gpus_, "1:" + gi).value(), whole);
  EXPECT_EQ(select_partition(gpus_, "1:" + gi + ":0").value(), part);
  EXPECT_EQ(select_partition(gpus_, compute_.uuid.value()).value(), part);
}

TEST_F(Selector, SaysWhichPartitionsThereAre) {
  EXPECT_THAT(select_partition(gpus_, "1:99").error().message,
              HasSubstr("1:" + std::to_string(instance_.id.value())));
  EXPECT_EQ(select_partition(gpus_, "1:5:9").error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(select_partition(gpus_, "1").error().kind, ErrorKind::kUsage);
  EXPECT_EQ(select_partition(gpus_, "1:x").error().kind, ErrorKind::kUsage);
  EXPECT_EQ(select_partition(gpus_, "MIG-0").error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace septet::gpu
