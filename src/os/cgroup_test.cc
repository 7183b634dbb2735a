// The limits are checked where this process may make groups, and skipped, saying so, where it may
// not.
#include "os/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "os/clock.h"
#include "os/process.h"

namespace septet::os {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Duration kPatience = seconds(30);

class CgroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<CgroupMounts> found = find_cgroups();
    if (!found.ok()) {
      GTEST_SKIP() << found.error().text();
    }
    mounts_ = *found;
  }

  std::unique_ptr<Cgroup> make(const std::string& name, const CgroupLimits& limits) {
    Result<std::unique_ptr<Cgroup>> group = Cgroup::create(mounts_, name, limits);
    EXPECT_TRUE(group.ok()) << group.error().text();
    return group.ok() ? *std::move(group) : nullptr;
  }

  Process start(const Cgroup& group, const std::string& script) {
    ProcessOptions options;
    options.arguments = {"sh", "-c", script};
    options.cgroup_procs_files = group.procs_files();
    Result<Process> process = Process::start(options);
    CHECK(process.ok());
    return *std::move(process);
  }

  // The folders of groups of ours with this last name part.
  std::vector<std::string> folders_named(const std::string& name) {
    std::vector<std::string> found;
    for (const std::string& parent : mounts_.folders) {
      for (const auto& entry : std::filesystem::directory_iterator(parent)) {
        const std::string folder = entry.path().filename();
        if (folder.starts_with("septet.") && folder.ends_with("." + name)) {
          found.push_back(entry.path());
        }
      }
    }
    return found;
  }

  CgroupMounts mounts_;
};

// The processor time, in clock ticks, of a process and the children it waited for.
std::uint64_t cpu_ticks(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string skipped;
  for (int number = 3; number <= 13; ++number) {
    fields >> skipped;
  }
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  fields >> user >> system;
  return user + system;
}

TEST_F(CgroupTest, HoldsAProcessToItsShareOfAProcessor) {
  const auto group = make("share", {.cpus = 0.2});
  Process spinner = start(*group, "while :; do :; done");

  const Instant begin = now();
  ASSERT_EQ(spinner.wait(seconds(2)), std::nullopt);
  const double took = to_seconds(now() - begin);
  const double share = double(cpu_ticks(spinner.pid())) / double(sysconf(_SC_CLK_TCK)) / took;

  // Never above the limit but for the kernel's settling; what a busy machine leaves below is open.
  EXPECT_LT(share, 0.3);
  EXPECT_GT(group->usage().throttled_periods, 0u);
}

TEST_F(CgroupTest, EndsAProcessThatOutgrowsItsMemory) {
  const auto group = make("memory", {.memory_bytes = 32 << 20});
  // A shell word that doubles: 64 MiB after 26 rounds.
  Process hog = start(*group, "w=x; i=0; while [ $i -lt 26 ]; do w=$w$w; i=$((i+1)); done");

  const auto status = hog.wait(kPatience);

  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->signal, SIGKILL) << status->text();
  EXPECT_GE(group->usage().out_of_memory_kills, 1u);
}

TEST_F(CgroupTest, OneGroupOutOfMemoryLeavesAnotherAlone) {
  const auto small = make("small", {.memory_bytes = 32 << 20});
  const auto other = make("other", {.memory_bytes = 32 << 20});
  Process neighbour = start(*other, "exec sleep 600");
  Process hog = start(*small, "w=x; i=0; while [ $i -lt 26 ]; do w=$w$w; i=$((i+1)); done");

  ASSERT_TRUE(hog.wait(kPatience).has_value());

  EXPECT_EQ(neighbour.poll_exit(), std::nullopt);
  EXPECT_EQ(other->usage().out_of_memory_kills, 0u);
}

TEST_F(CgroupTest, KillsWhatItsProcessesLeftBehind) {
  const auto group = make("kill", {.cpus = 0.5});
  Process parent = start(*group, "setsid sleep 600 & setsid sleep 600 & exit 0");
  ASSERT_TRUE(parent.wait(kPatience).has_value());

  const Result<Ok> killed = group->kill_all();

  EXPECT_TRUE(killed.ok());
  EXPECT_THAT(group->processes(), IsEmpty());
}

TEST_F(CgroupTest, IsGoneWithItsProcessesAtTheEndOfItsLife) {
  auto group = make("gone", {.cpus = 0.5});
  Process process = start(*group, "exec sleep 600");
  ASSERT_EQ(folders_named("gone").size(), mounts_.folders.size());

  group.reset();

  EXPECT_THAT(folders_named("gone"), IsEmpty());
  EXPECT_TRUE(process.wait(kPatience).has_value());
}

TEST_F(CgroupTest, ChangesTheLimitsOfARunningGroup) {
  const auto group = make("change", {.cpus = 0.2, .memory_bytes = 64 << 20});

  EXPECT_TRUE(group->set_limits({.cpus = 0.5, .memory_bytes = 32 << 20}).ok());
  EXPECT_TRUE(group->set_limits({.cpus = 0.1, .period = milliseconds(20)}).ok());
  EXPECT_TRUE(group->set_limits({}).ok());
}

TEST_F(CgroupTest, SweepingTakesTheGroupsOfAKilledOwnerAndNoOthers) {
  const auto mine = make("sweepmine", {.cpus = 0.5});
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    auto group = Cgroup::create(mounts_, "sweepdead", {.cpus = 0.5});
    ProcessOptions options;
    options.arguments = {"sleep", "600"};
    options.kill_with_parent = false;  // so that something is left to be swept
    options.cgroup_procs_files = (*group)->procs_files();
    const Result<Process> process = Process::start(options);
    const char byte = process.ok() ? 'y' : 'n';
    _exit(write(ends[1], &byte, 1) == 1 && pause() == 0 ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);

  EXPECT_GE(sweep_cgroups(mounts_), 1);

  EXPECT_THAT(folders_named("sweepdead"), IsEmpty());
  EXPECT_EQ(folders_named("sweepmine").size(), mounts_.folders.size());
  close(ends[0]);
  close(ends[1]);
}

TEST(FindCgroups, SaysInOneLineWhyThereAreNone) {
  const Result<CgroupMounts> found = find_cgroups_in("/dev/null");

  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().kind, ErrorKind::kPrecondition);
  EXPECT_THAT(found.error().text(), HasSubstr("no cgroup file system is mounted"));
}

class FindCgroupsIn : public ::testing::Test {
 protected:
  FindCgroupsIn() {
    std::string name = ::testing::TempDir() + "septet_cgroup_XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr);
    root_ = name;
  }
  ~FindCgroupsIn() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + name).parent_path());
    std::ofstream(root_ + "/" + name) << text;
  }
  Result<CgroupMounts> find() { return find_cgroups_in(root_ + "/mounts"); }

  std::string root_;
};

TEST_F(FindCgroupsIn, TakesTheSecondVersionWhereItOffersBothControllers) {
  write("mounts", "cgroup2 " + root_ + "/fs cgroup2 rw,nosuid 0 0\n");
  write("fs/cgroup.controllers", "cpuset cpu io memory pids\n");
  write("fs/cgroup.subtree_control", "cpu memory pids\n");

  const Result<CgroupMounts> found = find();

  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(found->version, CgroupVersion::kV2);
  EXPECT_EQ(found->folders, std::vector<std::string>{root_ + "/fs"});
}

TEST_F(FindCgroupsIn, AsksTheSecondVersionToHandOnWhatItDoesNotYet) {
  write("mounts", "cgroup2 " + root_ + "/fs cgroup2 rw 0 0\n");
  write("fs/cgroup.controllers", "cpu memory\n");
  write("fs/cgroup.subtree_control", "");

  ASSERT_TRUE(find().ok());

  std::ifstream file(root_ + "/fs/cgroup.subtree_control");
  std::string text;
  std::getline(file, text);
  EXPECT_EQ(text, "+cpu +memory");
}

TEST_F(FindCgroupsIn, RefusesASecondVersionWithoutTheMemoryController) {
  write("mounts", "cgroup2 " + root_ + "/fs cgroup2 rw 0 0\n");
  write("fs/cgroup.controllers", "cpu pids\n");

  const Result<CgroupMounts> found = find();

  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().message, HasSubstr("offers no memory controller"));
}

TEST_F(FindCgroupsIn, TakesTheFirstVersionOfAHybrid) {
  write("mounts", "cgroup " + root_ + "/cpu cgroup rw,cpu,cpuacct 0 0\ncgroup " + root_ +
                      "/memory cgroup rw,memory 0 0\ncgroup2 " + root_ +
                      "/unified cgroup2 rw 0 0\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  write("cpu/cpu.cfs_quota_us", "50000\n");
  write("memory/tasks", "");

  const Result<CgroupMounts> found = find();

  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(found->version, CgroupVersion::kV1);
  EXPECT_DOUBLE_EQ(available_cpus(*found), 0.5);
}

TEST_F(FindCgroupsIn, TakesTheFirstOfSeveralMountsOfAController) {
  write("mounts", "cgroup " + root_ + "/cpu cgroup rw,cpu 0 0\ncgroup " + root_ +
                      "/memory cgroup rw,memory 0 0\ncgroup /elsewhere/cpu cgroup rw,cpu 0 0\n" +
                      "cgroup /elsewhere/memory cgroup rw,memory 0 0\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  write("memory/tasks", "");

  const Result<CgroupMounts> found = find();

  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(found->folders, (std::vector<std::string>{root_ + "/cpu", root_ + "/memory"}));
}

TEST_F(FindCgroupsIn, RefusesAHybridThatSplitsTheTwoControllers) {
  write("mounts", "cgroup " + root_ + "/cpu cgroup rw,cpu 0 0\n");

  const Result<CgroupMounts> found = find();

  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().message, HasSubstr("different hierarchies"));
}

}  // namespace
}  // namespace septet::os
