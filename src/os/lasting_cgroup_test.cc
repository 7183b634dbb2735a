// Real groups where this process may make them; skipped, saying so, where it may not.
#include "os/lasting_cgroup.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "os/clock.h"
#include "os/process.h"

namespace septet::os {
namespace {

constexpr Duration kPatience = seconds(30);

class LastingCgroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<CgroupMounts> found = find_cgroups();
    if (!found.ok()) {
      GTEST_SKIP() << found.error().text();
    }
    mounts_ = *found;
    name_ = "test-" + std::to_string(getpid());
  }
  void TearDown() override {
    if (!name_.empty()) {
      EXPECT_TRUE(open()->remove().ok());
    }
  }

  std::unique_ptr<LastingCgroup> open() {
    Result<std::unique_ptr<LastingCgroup>> group = LastingCgroup::open(mounts_, name_);
    CHECK(group.ok());
    return *std::move(group);
  }

  static Process start(const std::string& script) {
    ProcessOptions options;
    options.arguments = {"sh", "-c", script};
    Result<Process> process = Process::start(options);
    CHECK(process.ok());
    return *std::move(process);
  }

  CgroupMounts mounts_;
  std::string name_;
};

TEST_F(LastingCgroupTest, OutlivesItsObjectAndIsFoundAgain) {
  Process child = start("exec sleep 600");
  ASSERT_TRUE(open()->add(child.pid()).ok());

  const auto names = LastingCgroup::list(mounts_);
  const auto again = open();

  EXPECT_NE(std::find(names.begin(), names.end(), name_), names.end());
  EXPECT_EQ(again->processes(), std::vector<int>{child.pid()});
  EXPECT_FALSE(child.poll_exit());
}

TEST_F(LastingCgroupTest, TakesChildrenWithIt) {
  // The children are born after the move, not before: the shell waits for a line.
  const std::string gate = testing::TempDir() + "/septet_gate_" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(gate.c_str(), 0600), 0);
  Process child = start("read line <'" + gate + "'; sleep 600 & sleep 600 & wait");
  const auto group = open();
  ASSERT_TRUE(group->add(child.pid()).ok());
  std::ofstream(gate) << "go\n";
  std::filesystem::remove(gate);

  ASSERT_TRUE(group->kill_all().ok());

  EXPECT_TRUE(group->processes().empty());
  EXPECT_TRUE(child.wait(kPatience));
}

TEST_F(LastingCgroupTest, AddingAnEndedProcessIsNotFound) {
  Process child = start("exit 0");
  ASSERT_TRUE(child.wait(kPatience));

  const Result<Ok> added = open()->add(child.pid());

  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.error().kind, ErrorKind::kNotFound);
}

TEST_F(LastingCgroupTest, WhatIsFrozenStandsStillUntilThawed) {
  Process child = start("while :; do :; done");
  const auto group = open();
  ASSERT_TRUE(group->add(child.pid()).ok());
  if (const Result<Ok> frozen = group->set_frozen(Frozen::kYes); !frozen.ok()) {
    GTEST_SKIP() << frozen.error().text();
  }
  // Freezing takes effect at the next return to user space; then the clock of the group stands.
  Duration before = group->processor_time();
  for (Duration later{}; (later = group->processor_time()) != before; before = later) {
    poll(nullptr, 0, 50);
  }

  poll(nullptr, 0, 100);
  const Duration while_frozen = group->processor_time();
  ASSERT_TRUE(group->set_frozen(Frozen::kNo).ok());
  const Instant deadline = now() + kPatience;
  while (group->processor_time() == while_frozen && now() < deadline) {
    poll(nullptr, 0, 10);
  }

  EXPECT_EQ(while_frozen, before);
  EXPECT_GT(group->processor_time(), while_frozen);
}

TEST_F(LastingCgroupTest, KillsWhatIsFrozen) {
  Process child = start("while :; do :; done");
  const auto group = open();
  ASSERT_TRUE(group->add(child.pid()).ok());
  if (const Result<Ok> frozen = group->set_frozen(Frozen::kYes); !frozen.ok()) {
    GTEST_SKIP() << frozen.error().text();
  }

  ASSERT_TRUE(group->kill_all().ok());

  EXPECT_TRUE(child.wait(kPatience));
}

// Memory devices stand for GPU nodes: the same rules, and they exist everywhere. 1:5 is /dev/zero,
// 1:7 is /dev/full; /dev/null (1:3) stays allowed.
class DeviceRulesTest : public LastingCgroupTest {
 protected:
  static constexpr const char* kScript =
      "read x < $0; (: < /dev/null) && echo null; (: < /dev/zero) && echo zero; (: < /dev/full) "
      "&& echo full; : < /dev/tty0 || :; echo done";

  // What a process in the group could open. It starts when the fifo gets a line.
  std::string opened(LastingCgroup& group) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("septet-device-test-" + name_);
    std::filesystem::create_directory(folder);
    const std::string fifo = folder / "go";
    const std::string out = folder / "out";
    CHECK(mkfifo(fifo.c_str(), 0600) == 0);
    const UniqueFd file(::open(out.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ProcessOptions options;
    options.arguments = {"sh", "-c", kScript, fifo};
    options.standard_output = file.get();
    Result<Process> child = Process::start(options);
    CHECK(child.ok());
    CHECK(group.add(child->pid()).ok());
    const UniqueFd go(::open(fifo.c_str(), O_WRONLY | O_CLOEXEC));
    CHECK(write(go.get(), "go\n", 3) == 3);
    CHECK(child->wait(kPatience).has_value());
    std::ifstream text(out);
    std::string result((std::istreambuf_iterator<char>(text)), {});
    std::filesystem::remove_all(folder);
    return result;
  }

  const std::vector<GuardedMajor> rules_ = {{1, {3, 5}, {3, 5, 7, 8, 9}}};
};

TEST_F(DeviceRulesTest, OnlyTheAllowedNodesOfAGuardedMajorOpen) {
  const auto group = open();
  EXPECT_EQ(opened(*group), "null\nzero\nfull\ndone\n");
  if (const Result<Ok> restricted = group->restrict_devices(rules_); !restricted.ok()) {
    GTEST_SKIP() << restricted.error().text();
  }

  EXPECT_EQ(opened(*group), "null\nzero\ndone\n");
}

// The program of v2 also works where v2 is mounted beside v1 (hybrid).
TEST(DeviceProgram, HoldsInAV2Group) {
  std::string v2;
  std::ifstream mounts("/proc/self/mounts");
  for (std::string source, folder, type, rest; mounts >> source >> folder >> type;
       std::getline(mounts, rest)) {
    if (type == "cgroup2") {
      v2 = folder;
    }
  }
  const std::string group = v2 + "/septet-test-" + std::to_string(getpid());
  if (v2.empty() || mkdir(group.c_str(), 0755) != 0) {
    GTEST_SKIP() << "no control group v2 can be made here";
  }
  const Result<Ok> attached = attach_device_program(group, {{1, {3, 5}, {}}});
  if (!attached.ok()) {
    rmdir(group.c_str());
    GTEST_SKIP() << attached.error().text();
  }

  ProcessOptions options;
  options.arguments = {"sh", "-c", ": < /dev/zero && ! (: < /dev/full)"};
  options.cgroup_procs_files = {group + "/cgroup.procs"};
  Result<Process> child = Process::start(options);
  ASSERT_TRUE(child.ok()) << child.error().text();
  const auto status = child->wait(kPatience);

  ASSERT_TRUE(status);
  EXPECT_TRUE(status->success()) << status->text();
  EXPECT_EQ(rmdir(group.c_str()), 0);
}

}  // namespace
}  // namespace septet::os
