// A borrowed slice of the simulated A100 is a real limit of processors and memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "base/text.h"
#include "lease_machine.h"
#include "os/cgroup.h"

namespace septet::acceptance {
namespace {

namespace fs = std::filesystem;

class LeaseLimitsTest : public LeaseTest {
 protected:
  void SetUp() override {
    if (const auto found = os::find_cgroups(); !found.ok()) {
      GTEST_SKIP() << found.error().text();
    }
    LeaseTest::SetUp();
  }
};

TEST_F(LeaseLimitsTest, ASliceHasItsShareOfTheProcessors) {
  start_daemon();

  // Two spinners on two processors would take two seconds each second; a seventh of them may not.
  const Outcome outcome =
      run_as(1001,
             "run -q --slice 1g.5gb -- sh -c 'timeout 3 sh -c \"while :; do :; done\" & "
             "timeout 3 sh -c \"while :; do :; done\"; wait; times'");

  // The last line of times: user and system time of the children, "0m0.84s 0m0.01s".
  const auto lines = lines_of(outcome.output);
  ASSERT_FALSE(lines.empty());
  const auto words = split(lines.back(), ' ');
  const std::size_t minutes = words[0].find('m');
  ASSERT_NE(minutes, std::string_view::npos) << outcome.output;
  const auto used = parse_double(words[0].substr(minutes + 1, words[0].size() - minutes - 2));
  ASSERT_TRUE(used) << outcome.output;
  const double cpus = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  EXPECT_LT(*used, 3 * cpus / 7 * 1.5) << outcome.output;
}

// An A100 whose smallest slice has little memory, so that running out of it does not take long.
class SmallSlice {
 public:
  SmallSlice() {
    std::string pattern = (fs::temp_directory_path() / "septet-node-XXXXXX").string();
    CHECK(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    std::ofstream(path()) << "version: 1\ngpus:\n  - model: A100-SXM4-40GB\n"
                             "    profiles: [{id: 19, memory-mib: 128}]\n";
  }
  ~SmallSlice() { fs::remove_all(folder_); }
  std::string path() const { return folder_ + "/node.yaml"; }

 private:
  std::string folder_;
};

class LeaseMemoryTest : private SmallSlice, public LeaseTest {
 protected:
  LeaseMemoryTest() : LeaseTest(SmallSlice::path()) {}
  void SetUp() override {
    if (const auto found = os::find_cgroups(); !found.ok()) {
      GTEST_SKIP() << found.error().text();
    }
    LeaseTest::SetUp();
  }
};

TEST_F(LeaseMemoryTest, OutOfMemoryInOneSliceLeavesTheOthersUntouched) {
  start_daemon();
  os::Process& neighbour = start_run(1002, "--slice 1g.5gb -- sleep 600");
  ASSERT_TRUE(has_active(1));

  // tail keeps its whole input: endless zeroes without a line end.
  const Outcome hog = run_as(1001, "run -q --slice 1g.5gb -- tail -n 1 /dev/zero");

  EXPECT_EQ(hog.exit_code, 128 + SIGKILL) << hog.output;
  EXPECT_FALSE(neighbour.poll_exit());
  EXPECT_EQ(leases("active").size(), 1U);
}

}  // namespace
}  // namespace septet::acceptance
