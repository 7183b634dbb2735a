// Against NVIDIA's own control program, which runs without a GPU (only servers cannot start). From
// PATH, or unpacked by scripts/setup; skipped, saying so, where there is neither.
#include "partition/edge/mps_control.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace septet::partition {
namespace {

namespace fs = std::filesystem;

std::string find_control_program() {
  const char* path = std::getenv("PATH");
  for (const std::string_view folder : split(path == nullptr ? "" : path, ':')) {
    const std::string program = std::string(folder) + "/nvidia-cuda-mps-control";
    if (access(program.c_str(), X_OK) == 0) {
      return program;
    }
  }
  const std::string unpacked = ".deps/nvidia-cuda-mps/usr/bin/nvidia-cuda-mps-control";
  return access(unpacked.c_str(), X_OK) == 0 ? fs::absolute(unpacked).string() : std::string();
}

class MpsControlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    program_ = find_control_program();
    if (program_.empty()) {
      GTEST_SKIP() << "nvidia-cuda-mps-control is not installed (Debian: nvidia-cuda-mps, "
                      "non-free); scripts/setup unpacks it";
    }
    std::string pattern = fs::temp_directory_path() / "septet-mps-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override {
    for (MpsControl& control : controls_) {
      EXPECT_TRUE(control.quit(seconds(1)).ok());
    }
    if (!folder_.empty()) {
      fs::remove_all(folder_);
    }
  }

  // A daemon of its own folder, ended with the test.
  MpsControl& start(const std::string& name) {
    controls_.emplace_back(MpsControlOptions{
        .folder = folder_ + "/" + name, .device = "GPU-" + name, .program = program_});
    const Result<Ok> started = controls_.back().start();
    EXPECT_TRUE(started.ok()) << started.error().text();
    return controls_.back();
  }

  std::string program_;
  std::string folder_;
  std::deque<MpsControl> controls_;
};

TEST_F(MpsControlTest, StartsAndEnds) {
  MpsControl& control = start("a");

  EXPECT_TRUE(control.is_alive());
  EXPECT_TRUE(control.servers()->empty());
  EXPECT_TRUE(control.clients()->empty());
  ASSERT_TRUE(control.quit(seconds(1)).ok());
  EXPECT_FALSE(control.is_alive());
}

TEST_F(MpsControlTest, TakesOverADaemonThatRuns) {
  MpsControl& first = start("a");
  ASSERT_TRUE(first.set_defaults({.thread_percent = 20}).ok());

  MpsControl& second = start("a");

  EXPECT_EQ(second.defaults()->thread_percent, 20U);
}

TEST_F(MpsControlTest, SocketFilesOfADeadDaemonAreNoLife) {
  ASSERT_TRUE(start("a").quit(seconds(1)).ok());
  ASSERT_TRUE(fs::exists(folder_ + "/a/pipe/control"));

  EXPECT_FALSE(controls_.back().is_alive());
  ASSERT_TRUE(controls_.back().start().ok());
  EXPECT_TRUE(controls_.back().is_alive());
}

TEST_F(MpsControlTest, ReadsBackWhatItSets) {
  MpsControl& control = start("a");
  const MpsDefaults wanted{.thread_percent = 14, .memory_mib = 5120, .priority = 1};

  const Result<Ok> set = control.set_defaults(wanted);

  ASSERT_TRUE(set.ok()) << set.error().text();
  EXPECT_EQ(*control.defaults(), wanted);
}

// The daemon of 535 answers a limit in whole GiB; what cannot be read back is not called set.
TEST_F(MpsControlTest, MemoryThatIsNoWholeGiBIsReportedAsNotKept) {
  MpsControl& control = start("a");

  const Result<Ok> set = control.set_defaults({.thread_percent = 50, .memory_mib = 4600});

  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().kind, ErrorKind::kVerification);
  EXPECT_NE(set.error().message.find("4096 MiB"), std::string::npos) << set.error().text();
}

TEST_F(MpsControlTest, NonsenseNeverReachesTheDaemon) {
  MpsControl& control = start("a");
  ASSERT_TRUE(control.set_defaults({.thread_percent = 30}).ok());

  EXPECT_EQ(control.set_defaults({.thread_percent = 101}).error().kind, ErrorKind::kUsage);

  EXPECT_EQ(control.defaults()->thread_percent, 30U);
}

TEST_F(MpsControlTest, DaemonsOfTwoFoldersAreIndependent) {
  MpsControl& a = start("a");
  MpsControl& b = start("b");

  ASSERT_TRUE(a.set_defaults({.thread_percent = 20}).ok());

  EXPECT_EQ(b.defaults()->thread_percent, 100U);
}

TEST_F(MpsControlTest, AnUnknownCommandIsAnErrorThoughItEndsWithZero) {
  EXPECT_EQ(start("a").ask("make_coffee").error().kind, ErrorKind::kFailed);
}

TEST_F(MpsControlTest, AServerThatIsNotThereIsNotFound) {
  EXPECT_EQ(start("a").ask("get_client_list 1").error().kind, ErrorKind::kNotFound);
}

TEST_F(MpsControlTest, AServerThatCannotStartIsSeenInTheLog) {
  MpsControl& control = start("a");
  if (fs::exists("/proc/driver/nvidia/version")) {
    GTEST_SKIP() << "there is a GPU here: the server can start";
  }

  ASSERT_TRUE(control.ask(fmt::format("start_server -uid {}", getuid())).ok());
  for (int i = 0; i < 500 && control.server_failure().empty(); ++i) {
    ASSERT_TRUE(control.is_alive());  // one question each round: no busy waiting
  }

  EXPECT_EQ(control.server_failure(), "status 1");
}

TEST_F(MpsControlTest, TerminatingWhatIsNoClientIsHarmless) {
  EXPECT_TRUE(start("a").terminate_client(getpid()).ok());
}

TEST(MpsControl, WithoutTheProgramSaysWhatToInstall) {
  std::string pattern = fs::temp_directory_path() / "septet-mps-XXXXXX";
  const std::string folder = mkdtemp(pattern.data());
  MpsControl control({.folder = folder, .device = "GPU-x", .program = "/no/such/mps-control"});

  const Result<Ok> started = control.start();

  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(started.error().hint.find("nvidia-cuda-mps"), std::string::npos);
  fs::remove_all(folder);
}

TEST(MpsControl, WhatUsesTheDeviceWithoutBeingAClientIsFound) {
  EXPECT_EQ(unlimited_processes({1, 2, 3}, {2}), (std::vector<int>{1, 3}));
}

}  // namespace
}  // namespace septet::partition
