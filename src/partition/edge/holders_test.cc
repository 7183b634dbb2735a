#include "partition/edge/holders.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>

#include "os/durable_file.h"
#include "os/owned_folder.h"
#include "os/process.h"

namespace septet::partition {
namespace {

using testing::HasSubstr;

// A /proc that looks as on a machine with one A100 as minor 0.
class Holders : public testing::Test {
 protected:
  void SetUp() override {
    auto made = os::OwnedFolder::create("holders");
    ASSERT_TRUE(made.ok());
    folder_ = *std::move(made);
    write("proc/driver/nvidia/gpus/0000:07:00.0/information",
          "Model: \t\t NVIDIA A100-SXM4-40GB\nDevice Minor: \t 0\n");
    write("proc/driver/nvidia-caps/mig-minors",
          "config 1\nmonitor 2\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\ngpu1/gi1/access 147\n");
    state_.pci_bus_id = "00000000:07:00.0";
    state_.name = "NVIDIA A100-SXM4-40GB";
  }

  std::string root() const { return folder_->path(); }
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root() + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    ASSERT_TRUE(os::replace_file(path.string(), text).ok());
  }
  void add_process(int pid, const std::string& name, const std::string& group,
                   const std::string& file) {
    const std::string folder = "proc/" + std::to_string(pid);
    write(folder + "/comm", name + "\n");
    write(folder + "/cgroup", "0::" + group + "\n");
    std::filesystem::create_directories(root() + "/" + folder + "/fd");
    std::filesystem::create_symlink(file, root() + "/" + folder + "/fd/3");
  }

  std::unique_ptr<os::OwnedFolder> folder_;
  gpu::GpuState state_;
};

TEST_F(Holders, NamesUnitAndWhatStopsIt) {
  add_process(812, "nv-hostengine", "/system.slice/nvidia-dcgm.service", "/dev/nvidia0");

  const auto holders = find_holders(state_, false, root());

  ASSERT_EQ(holders.size(), 1U);
  EXPECT_THAT(holders[0].text(), HasSubstr("nv-hostengine (pid 812, user "));
  EXPECT_THAT(holders[0].text(), HasSubstr("unit nvidia-dcgm.service"));
  EXPECT_EQ(holders_hint(holders), "systemctl stop nvidia-dcgm");
  EXPECT_FALSE(holders[0].gpu_instance);
}

TEST_F(Holders, NamesTheContainerAndThePartition) {
  const std::string id(64, 'a');
  add_process(4242, "python3", "/system.slice/docker-" + id + ".scope",
              "/dev/nvidia-caps/nvidia-cap12");

  const auto holders = find_holders(state_, false, root());

  ASSERT_EQ(holders.size(), 1U);
  EXPECT_EQ(holders[0].container, id.substr(0, 12));
  EXPECT_EQ(holders[0].gpu_instance, gpu::GpuInstanceId(1));
}

TEST_F(Holders, SkipsOtherGpusAndOtherFiles) {
  add_process(5000, "python3", "/", "/dev/nvidia1");
  add_process(5001, "python3", "/", "/dev/nvidia-caps/nvidia-cap147");
  add_process(5002, "bash", "/", "/dev/null");

  EXPECT_TRUE(find_holders(state_, false, root()).empty());
}

TEST_F(Holders, SeesMappedDevices) {
  add_process(6000, "tool", "/", "/dev/null");
  write("proc/6000/maps", "7f00-7f01 rw-s 00000000 00:06 600   /dev/nvidia0\n");

  EXPECT_EQ(find_holders(state_, false, root()).size(), 1U);
}

TEST_F(Holders, NamesKernelModulesInUse) {
  write("proc/modules",
        "nvidia_drm 77824 4 - Live 0x0\nnvidia_uvm 1 0 - Live 0x0\nnvidia 99 90 nvidia_drm, Live "
        "0x0\n");

  EXPECT_THAT(blocking_modules(root()), testing::ElementsAre("nvidia_drm (4 users)"));
}

TEST(Drain, LetsOurOwnLeaveAndNobodyElse) {
  auto ours = os::Process::start(
      {.arguments = {"sleep", "600"}, .environment = {}, .cgroup_procs_files = {}});
  auto others = os::Process::start(
      {.arguments = {"sleep", "600"}, .environment = {}, .cgroup_procs_files = {}});
  ASSERT_TRUE(ours.ok() && others.ok());
  Holder mine;
  mine.pid = ours->pid();
  mine.ours = true;
  Holder foreign;
  foreign.pid = others->pid();

  const auto left = drain({mine, foreign}, seconds(20));

  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].pid, others->pid());
  EXPECT_EQ(ours->wait(seconds(20))->signal, SIGTERM);
  EXPECT_FALSE(others->poll_exit());
}

}  // namespace
}  // namespace septet::partition
