#include "gpu/simulated_sysroot.h"

#include <gmock/gmock.h>

#include <map>

#include "gpu/simulated_instances.h"

namespace septet::gpu {
namespace {

using ::testing::HasSubstr;

std::map<std::string, std::string> rendered(const SimulatedNode& node) {
  std::map<std::string, std::string> files;
  for (const RenderedFile& file : render_sysroot(node)) {
    CHECK(files.emplace(file.path, file.content).second);
  }
  return files;
}

TEST(SimulatedSysroot, ListsEveryPossibleCapability) {
  const auto files = rendered(make_simulated_node("A100-SXM4-40GBx2").value());

  const std::string& minors = files.at("proc/driver/nvidia-caps/mig-minors");
  EXPECT_TRUE(minors.starts_with(
      "config 1\nmonitor 2\ngpu0/gi0/access 3\ngpu0/gi0/ci0/access 4\ngpu0/gi0/ci1/access 5\n"));
  EXPECT_THAT(minors, HasSubstr("gpu0/gi1/access 12\n"));
  EXPECT_THAT(minors, HasSubstr("gpu1/gi0/access 138\n"));
  EXPECT_THAT(minors, HasSubstr("gpu1/gi14/ci7/access 272\n"));
}

TEST(SimulatedSysroot, HasACapabilityFileForEveryInstance) {
  SimulatedNode node = make_simulated_node("A100-SXM4-40GB").value();
  GpuInstance instance;
  ComputeInstance compute;
  ASSERT_EQ(set_mig_mode(node.gpus[0], MigMode::kEnabled).code, NvmlCode::kSuccess);
  ASSERT_EQ(create_gpu_instance(node.gpus[0], ProfileId(9), Placement{4, 4}, instance),
            NvmlCode::kSuccess);
  ASSERT_EQ(create_compute_instance(node.gpus[0], instance.id, ProfileId(2), {}, compute),
            NvmlCode::kSuccess);

  const auto files = rendered(node);

  EXPECT_EQ(files.at("proc/driver/nvidia/capabilities/gpu0/mig/gi1/access"),
            "DeviceFileMinor: 12\nDeviceFileMode: 256\nDeviceFileModify: 1\n");
  EXPECT_THAT(files.at("proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access"),
              HasSubstr("DeviceFileMinor: 13\n"));
}

TEST(SimulatedSysroot, DescribesThePciDevice) {
  const auto files = rendered(make_simulated_node("A30").value());
  const std::string folder = "sys/bus/pci/devices/0000:07:00.0/";

  EXPECT_EQ(files.at(folder + "vendor"), "0x10de\n");
  EXPECT_EQ(files.at(folder + "device"), "0x20b7\n");
  EXPECT_EQ(files.at(folder + "class"), "0x030200\n");
  EXPECT_EQ(files.at(folder + "config").size(), 256U);
  EXPECT_EQ(files.at(folder + "config").substr(0, 4), "\xDE\x10\xB7\x20");
}

}  // namespace
}  // namespace septet::gpu
