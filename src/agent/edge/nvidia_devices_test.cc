// The driver's files, written by the test as a driver shows them.
#include "agent/edge/nvidia_devices.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace septet::agent {
namespace {

class NvidiaDevicesTest : public ::testing::Test {
 protected:
  NvidiaDevicesTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "septet-devices-XXXXXX";
    root_ = mkdtemp(pattern.data());
    files_ = {root_ + "/mig-minors", root_ + "/devices", root_ + "/gpus"};
    std::ofstream(files_.devices) << "Character devices:\n  1 mem\n195 nvidia\n"
                                     "235 nvidia-caps\n\nBlock devices:\n  8 sd\n";
    std::ofstream(files_.mig_minors)
        << "config 1\nmonitor 2\ngpu2/gi7/access 66\ngpu2/gi7/ci0/access 67\n"
           "gpu2/gi8/access 75\ngpu2/gi8/ci0/access 76\n";
    std::filesystem::create_directories(files_.gpus + "/0000:07:00.0");
    std::ofstream(files_.gpus + "/0000:07:00.0/information")
        << "Model: \t\t NVIDIA A100\nIRQ:   \t\t 42\nDevice Minor: \t 2\n";

    gpu::GpuState gpu;
    gpu.uuid = gpu::GpuUuid("GPU-1");
    gpu.pci_bus_id = "00000000:07:00.0";
    gpu::GpuInstance instance;
    instance.id = gpu::GpuInstanceId(7);
    instance.compute_instances = {{gpu::ComputeInstanceId(0), {}, {0, 1}, gpu::MigUuid("MIG-1")}};
    gpu.instances = {instance};
    gpus_ = {gpu};

    partition_.id = lend::PartitionId("MIG-1");
    partition_.gpu = gpus_[0].uuid;
    partition_.profile = "1g.5gb";
  }
  ~NvidiaDevicesTest() override { std::filesystem::remove_all(root_); }

  std::string root_;
  NvidiaDeviceFiles files_;
  std::vector<gpu::GpuState> gpus_;
  lend::Partition partition_;
};

TEST_F(NvidiaDevicesTest, AMigDeviceOpensItsGpuAndItsTwoCapabilitiesOnly) {
  const auto rules = nvidia_device_rules(gpus_, {partition_}, files_);

  ASSERT_TRUE(rules.ok()) << rules.error().text();
  ASSERT_EQ(rules->size(), 2U);
  EXPECT_EQ((*rules)[0].major, 195U);
  EXPECT_EQ((*rules)[0].allowed_minors, (std::vector<unsigned>{255, 254, 2}));
  EXPECT_EQ((*rules)[1].major, 235U);
  EXPECT_EQ((*rules)[1].allowed_minors, (std::vector<unsigned>{66, 67}));
  // Forbidden as well: the right to change the layout.
  const auto& known = (*rules)[1].known_minors;
  EXPECT_NE(std::find(known.begin(), known.end(), 1U), known.end());
  EXPECT_NE(std::find(known.begin(), known.end(), 75U), known.end());
}

TEST_F(NvidiaDevicesTest, AWholeGpuOpensNoCapability) {
  partition_.id = lend::PartitionId("GPU-1");
  partition_.profile = "gpu";

  const auto rules = nvidia_device_rules(gpus_, {partition_}, files_);

  ASSERT_TRUE(rules.ok()) << rules.error().text();
  EXPECT_TRUE((*rules)[1].allowed_minors.empty());
}

TEST_F(NvidiaDevicesTest, WithoutTheDriversFilesNothingIsGuessed) {
  std::filesystem::remove(files_.mig_minors);

  const auto rules = nvidia_device_rules(gpus_, {partition_}, files_);

  ASSERT_FALSE(rules.ok());
  EXPECT_EQ(rules.error().kind, ErrorKind::kPrecondition);
}

}  // namespace
}  // namespace septet::agent
