// Other programs of Debian that speak NVML: pynvml, nvtop, hwloc.

#include <gmock/gmock.h>

#include "simulated_machine.h"

namespace septet::acceptance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The Python that Debian's packages belong to, with pynvml where scripts/setup unpacked it.
std::string python() {
  return "env PYTHONPATH=" + unpacked("python3-pynvml") +
         "/usr/lib/python3/dist-packages /usr/bin/python3 ";
}

class Clients : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!foreign_programs_barred().empty()) {
      GTEST_SKIP() << foreign_programs_barred();
    }
  }

  SimulatedMachine machine_{"A100-SXM4-40GB"};
};

TEST_F(Clients, PynvmlPartitionsTheGpu) {
  if (machine_.run(python() + "-c 'import pynvml'").exit_code != 0) {
    GTEST_SKIP() << "no pynvml: apt-get install python3-pynvml";
  }
  const std::string script = machine_.write_file("partition.py", R"(
import pynvml as n
n.nvmlInit()
gpu = n.nvmlDeviceGetHandleByIndex(0)
print(n.nvmlDeviceGetName(gpu), n.nvmlDeviceGetMemoryInfo(gpu).total // 2**20)
print(n.nvmlDeviceSetMigMode(gpu, 1), n.nvmlDeviceGetMigMode(gpu))
profile = n.nvmlDeviceGetGpuInstanceProfileInfo(gpu, 1)
print(profile.id, profile.memorySizeMB)
gi = n.nvmlDeviceCreateGpuInstance(gpu, profile.id)
ci = n.nvmlGpuInstanceCreateComputeInstance(gi, 1)
mig = n.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
print(n.nvmlDeviceGetUUID(mig)[:4], n.nvmlDeviceGetGpuInstanceId(mig), n.nvmlDeviceGetName(mig))
try:
    n.nvmlGpuInstanceDestroy(gi)
except n.NVMLError as error:
    print(error)
n.nvmlComputeInstanceDestroy(ci)
n.nvmlGpuInstanceDestroy(gi)
n.nvmlShutdown()
)");

  const Outcome outcome = machine_.run(python() + script);

  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(lines_of(outcome.output),
              ElementsAre("NVIDIA A100-SXM4-40GB 40960", "0 [1, 1]", "14 9856",
                          "MIG- 3 NVIDIA A100-SXM4-40GB MIG 2g.10gb", "In use by another client"));
}

TEST_F(Clients, NvtopShowsTheGpu) {
  if (find_program("nvtop").empty() || find_program("script").empty()) {
    GTEST_SKIP() << "no nvtop: apt-get install nvtop (contrib)";
  }

  // It draws until a key is pressed: q, once the GPU's name is on the screen.
  const std::string screen = machine_.folder() + "/screen";
  const Outcome outcome = machine_.run(
      "{ until grep -q A100 " + screen + "; do sleep 0.1; done; printf q; } 2>/dev/null | " +
      "TERM=xterm timeout 60 script -qec 'stty cols 120 rows 40; " + find_program("nvtop") +
      " -d 1' /dev/null | tee " + screen);

  EXPECT_THAT(outcome.output, HasSubstr("NVIDIA A100-SXM4-40GB"));
}

TEST_F(Clients, HwlocFindsTheGpuOnItsPciDevice) {
  if (find_program("lstopo-no-graphics").empty()) {
    GTEST_SKIP() << "no hwloc: apt-get install hwloc libhwloc-contrib-plugins";
  }
  const Outcome rendered = machine_.septet("sim render");
  ASSERT_EQ(rendered.exit_code, 0) << rendered.output;
  const std::string tree = lines_of(rendered.output)[0] + "/sys/bus/pci/devices";
  const std::string mount = "mount --bind " + tree + " /sys/bus/pci/devices";
  if (machine_.run("unshare -rm sh -c '" + mount + "'").exit_code != 0) {
    GTEST_SKIP() << "no private mount namespace here, which shows hwloc the simulated PCI tree";
  }

  const std::string folder = "/usr/lib/$(uname -m)-linux-gnu/hwloc";
  const std::string plugins = "export HWLOC_PLUGINS_PATH=" + folder + ":" +
                              unpacked("libhwloc-contrib-plugins") + folder + "; ";

  const Outcome topology = machine_.run(plugins + "unshare -rm sh -c '" + mount +
                                        " && lstopo-no-graphics --whole-io -v'");

  EXPECT_EQ(topology.exit_code, 0) << topology.output;
  EXPECT_THAT(topology.output, HasSubstr("busid=0000:07:00.0 id=10de:20b0"));
  if (topology.output.find("NVML") == std::string::npos) {
    GTEST_SKIP() << "hwloc without its NVML plugin: apt-get install libhwloc-contrib-plugins";
  }
  EXPECT_THAT(topology.output, HasSubstr("GPUModel=\"NVIDIA A100-SXM4-40GB\""));
  EXPECT_THAT(topology.output, HasSubstr("\"nvml0\""));
}

}  // namespace
}  // namespace septet::acceptance
