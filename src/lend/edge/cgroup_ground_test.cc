// Real groups where this process may make them; those tests are skipped, saying so, where it may
// not.
#include "lend/edge/cgroup_ground.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "os/process.h"
#include "support/ledger_driver.h"

namespace septet::lend {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr Duration kPatience = seconds(30);

Lease active_lease(std::uint64_t id, const char* slice = "1g.5gb") {
  testing::LedgerDriver driver;
  driver.observe(*slice == '1' ? testing::seven_slices() : std::vector{testing::whole_gpu()});
  Lease lease = driver.lease(driver.ask(testing::LedgerDriver::request(1000, slice)));
  lease.id = LeaseId(id);
  return lease;
}

os::Process start_sleeper() {
  os::ProcessOptions options;
  options.arguments = {"sleep", "600"};
  Result<os::Process> process = os::Process::start(options);
  CHECK(process.ok());
  return *std::move(process);
}

const Error kNoGroups = make_error(ErrorKind::kPermission, "no groups here");

// A lease of which nothing but the pids is known.
TEST(CgroupGroundWithout, LimitsAreAdvisoryAndProcessesAreStillEnded) {
  CgroupGround ground(kNoGroups, {.prefix = "test", .is_simulated = true});
  os::Process sleeper = start_sleeper();

  const Result<LeaseSetting> setting = ground.set_up(active_lease(1), {testing::seven_slices()[0]});
  ASSERT_TRUE(ground.add_process(LeaseId(1), sleeper.pid()).ok());
  ground.ask_to_end(LeaseId(1));

  ASSERT_TRUE(setting.ok()) << setting.error().text();
  EXPECT_FALSE(setting->is_enforced);
  EXPECT_THAT(ground.why_advisory(), ::testing::HasSubstr("no groups here"));
  EXPECT_TRUE(sleeper.wait(kPatience));
  EXPECT_THAT(ground.processes(LeaseId(1)), IsEmpty());
}

TEST(CgroupGroundWithout, ASharedSliceNeedsADriver) {
  CgroupGround ground(kNoGroups, {.prefix = "test"});

  const auto setting = ground.set_up(active_lease(1, "mps:25%"), {testing::whole_gpu()});

  ASSERT_FALSE(setting.ok());
  EXPECT_EQ(setting.error().kind, ErrorKind::kPrecondition);
}

class CgroupGroundTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<os::CgroupMounts> mounts = os::find_cgroups();
    if (!mounts.ok()) {
      GTEST_SKIP() << mounts.error().text();
    }
    mounts_ = *mounts;
    prefix_ = fmt::format("test{}", getpid());
  }
  void TearDown() override {
    if (!prefix_.empty()) {
      make().end_unknown({});
    }
  }

  // The ground of a daemon; another one after a crash finds its groups.
  CgroupGround make(CgroupGroundOptions options = {}) const {
    options.prefix = prefix_;
    return CgroupGround(mounts_, std::move(options));
  }
  std::string name(std::uint64_t lease) const { return fmt::format("lease-{}-{}", prefix_, lease); }

  const std::vector<Partition> partition_ = {testing::seven_slices()[0]};
  os::CgroupMounts mounts_;
  std::string prefix_;
};

TEST_F(CgroupGroundTest, AfterACrashTheProcessesAreFoundAgain) {
  os::Process sleeper = start_sleeper();
  {
    CgroupGround before = make();
    ASSERT_TRUE(before.set_up(active_lease(1), partition_).ok());
    ASSERT_TRUE(before.add_process(LeaseId(1), sleeper.pid()).ok());
  }

  CgroupGround after = make();
  after.end_unknown({LeaseId(1)});
  ASSERT_TRUE(after.set_up(active_lease(1), partition_).ok());

  EXPECT_THAT(after.processes(LeaseId(1)), ElementsAre(sleeper.pid()));
  EXPECT_FALSE(sleeper.poll_exit());
}

TEST_F(CgroupGroundTest, WhatTheLedgerDoesNotKnowIsEnded) {
  os::Process sleeper = start_sleeper();
  {
    CgroupGround before = make();
    ASSERT_TRUE(before.set_up(active_lease(1), partition_).ok());
    ASSERT_TRUE(before.set_up(active_lease(2), partition_).ok());
    ASSERT_TRUE(before.add_process(LeaseId(1), sleeper.pid()).ok());
  }

  make().end_unknown({LeaseId(2)});

  EXPECT_TRUE(sleeper.wait(kPatience));
  EXPECT_THAT(os::LastingCgroup::list(mounts_), Not(Contains(name(1))));
  EXPECT_THAT(os::LastingCgroup::list(mounts_), Contains(name(2)));
}

TEST_F(CgroupGroundTest, ASimulatedSliceHasItsLimits) {
  CgroupGround ground =
      make({.is_simulated = true, .limits = [](const auto&, const auto&) {
              return os::CgroupLimits{.cpus = 0.5, .memory_bytes = std::int64_t{64} << 20};
            }});

  const Result<LeaseSetting> setting = ground.set_up(active_lease(1), partition_);

  ASSERT_TRUE(setting.ok()) << setting.error().text();
  EXPECT_TRUE(setting->is_enforced);
  EXPECT_EQ(setting->cpus, 0.5);
  EXPECT_EQ(setting->memory_bytes, std::int64_t{64} << 20);
}

TEST_F(CgroupGroundTest, WithoutItsDeviceRulesALeaseIsAdvisory) {
  CgroupGround ground =
      make({.device_rules = [](const auto&) -> Result<std::vector<os::GuardedMajor>> {
        return make_error(ErrorKind::kPrecondition, "no capability files");
      }});

  const Result<LeaseSetting> setting = ground.set_up(active_lease(1), partition_);

  ASSERT_TRUE(setting.ok()) << setting.error().text();
  EXPECT_FALSE(setting->is_enforced);
}

TEST_F(CgroupGroundTest, TakenDownNothingIsLeft) {
  CgroupGround ground = make();
  os::Process sleeper = start_sleeper();
  ASSERT_TRUE(ground.set_up(active_lease(1), partition_).ok());
  ASSERT_TRUE(ground.add_process(LeaseId(1), sleeper.pid()).ok());

  ground.kill(LeaseId(1));
  ASSERT_TRUE(sleeper.wait(kPatience));

  EXPECT_TRUE(ground.take_down(LeaseId(1)).ok());
  EXPECT_THAT(os::LastingCgroup::list(mounts_), Not(Contains(name(1))));
}

}  // namespace
}  // namespace septet::lend
