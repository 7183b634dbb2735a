// septet vgpu on a rendered tree of the vendor layout, whose files keep what is written as the
// kernel's do. The mdev layout needs a kernel that answers: see vgpu_sysfs_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "simulated_machine.h"

namespace septet::acceptance {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class VgpuTest : public ::testing::Test {
 protected:
  VgpuTest() {
    const std::string devices = machine_.folder() + "/root/sys/bus/pci/devices/";
    const std::string function = devices + "0000:07:00.4";
    fs::create_directories(devices + "0000:07:00.0");
    fs::create_directories(function + "/nvidia");
    fs::create_symlink("../0000:07:00.4", devices + "0000:07:00.0/virtfn0");
    std::ofstream(function + "/nvidia/current_vgpu_type") << "0\n";
    std::ofstream(function + "/nvidia/creatable_vgpu_types")
        << "ID    : vGPU Name\n1414  : NVIDIA H200X-1-18C\n";
  }

  Outcome vgpu(const std::string& words) const {
    return machine_.septet("vgpu --root " + machine_.folder() + "/root " + words);
  }

  SimulatedMachine machine_{"A100-SXM4-40GB"};
};

TEST_F(VgpuTest, ListsCreatesAndRemovesAndWarnsOfTheLicence) {
  const Outcome types = vgpu("types 0000:07:00.0");
  const Outcome created = vgpu("create 0000:07:00.0 --type 1414 --for ada");
  const Outcome full = vgpu("create 0000:07:00.0 --type 1414 --for bob");
  const Outcome stranger = vgpu("remove 0000:07:00.4 --for bob");
  const Outcome removed = vgpu("remove 0000:07:00.4 --for ada");

  EXPECT_THAT(types.output, HasSubstr("1414  NVIDIA H200X-1-18C"));
  EXPECT_EQ(created.exit_code, 0) << created.output;
  EXPECT_THAT(created.output, HasSubstr("vGPU licence"));
  EXPECT_EQ(full.exit_code, 8) << full.output;
  EXPECT_EQ(stranger.exit_code, 7) << stranger.output;
  EXPECT_EQ(removed.exit_code, 0) << removed.output;
}

TEST_F(VgpuTest, AnUnknownTypeNamesWhatTheCardOffers) {
  const Outcome unknown = vgpu("create 0000:07:00.0 --type 7");

  EXPECT_EQ(unknown.exit_code, 6) << unknown.output;
  EXPECT_THAT(unknown.output, HasSubstr("it offers 1414 (NVIDIA H200X-1-18C)"));
}

}  // namespace
}  // namespace septet::acceptance
