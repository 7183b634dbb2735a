// Three users borrow the seven slices of a simulated A100, queue for them and give them back.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lease_machine.h"

namespace septet::acceptance {
namespace {

using ::testing::HasSubstr;

TEST_F(LeaseTest, ThreeUsersBorrowSevenSlicesAndTheEighthIsTold) {
  start_daemon();
  for (unsigned i = 0; i < 7; ++i) {
    start_run(1001 + i % 3, "--slice 1g.5gb -- sleep 600");
  }
  ASSERT_TRUE(has_active(7));

  const Outcome eighth = run_as(1002, "run --slice 1g.5gb -- true");
  const std::multiset<std::string> partitions = held();

  EXPECT_EQ(eighth.exit_code, 8) << eighth.output;
  EXPECT_THAT(eighth.output, HasSubstr("--queue"));
  EXPECT_EQ(std::set<std::string>(partitions.begin(), partitions.end()).size(), 7U);
}

TEST_F(LeaseTest, TheCommandRunsAsItsCallerAndItsExitCodeComesBack) {
  start_daemon();

  const Outcome outcome =
      run_as(1001, "run -q --slice 1g.5gb -- sh -c 'id -u; echo $CUDA_VISIBLE_DEVICES; exit 42'");

  EXPECT_EQ(outcome.exit_code, 42);
  const auto lines = lines_of(outcome.output);
  ASSERT_GE(lines.size(), 2U) << outcome.output;
  EXPECT_EQ(lines[0], "1001");
  EXPECT_THAT(lines[1], HasSubstr("MIG-"));
  EXPECT_TRUE(leases().empty());
}

TEST_F(LeaseTest, WhoQueuesIsServedWhenSomethingIsGivenBack) {
  start_daemon();
  for (unsigned i = 0; i < 7; ++i) {
    start_run(1001, "--slice 1g.5gb -- sleep 600");
  }
  ASSERT_TRUE(has_active(7));
  start_run(1002, "--slice 1g.5gb --queue -- sleep 600");
  ASSERT_TRUE(eventually([&] { return leases("queued").size() == 1; }));

  runs_[0]->signal_group(SIGTERM);

  EXPECT_TRUE(eventually([&] { return leases("queued").empty(); }));
  EXPECT_TRUE(has_active(7));
}

TEST_F(LeaseTest, IdleIsWarnedAndTakenBackAndWorkIsNot) {
  start_daemon("lend: {idle_grace: 1s, sample_every: 200ms, kill_grace: 1s}");
  os::Process& idle = start_run(1001, "--slice 1g.5gb --idle 1s -- sleep 600");
  os::Process& busy = start_run(1002, "--slice 1g.5gb --idle 1s -- sh -c 'while :; do :; done'");

  EXPECT_TRUE(idle.wait(kPatience)) << output_of_run(0);

  EXPECT_THAT(output_of_run(0), HasSubstr("is idle"));
  EXPECT_FALSE(busy.poll_exit()) << output_of_run(1);
  const Outcome history = run_as(1001, "lease history");
  EXPECT_THAT(history.output, HasSubstr("idle"));
}

TEST_F(LeaseTest, ALargeSliceIsMadeOfIdleOnesOnly) {
  start_daemon();
  start_run(1001, "--slice 1g.5gb -- sleep 600");
  ASSERT_TRUE(has_active(1));
  const std::multiset<std::string> before = held();

  const Outcome outcome = run_as(1002, "run --slice 3g.20gb -- sh -c 'echo $SEPTET_SLICE'");

  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("3g.20gb"));
  EXPECT_EQ(held(), before);
}

TEST_F(LeaseTest, AnExpiredLeaseRunsItsCheckpointHookAsTheCallerThenAsksTheCommand) {
  start_daemon();
  const std::string hook = shared_file("hook");
  os::Process& run = start_run(
      1001, fmt::format("--slice 1g.5gb --for 2s --checkpoint 'id -u > {}' -- "
                        "sh -c 'trap \"test -s {} && exit 42\" TERM; while :; do sleep 0.05; done'",
                        hook, hook));

  const auto status = run.wait(kPatience);

  ASSERT_TRUE(status) << output_of_run(0);
  // 42: the hook had written before the command was asked.
  EXPECT_EQ(status->text(), "exit code 42") << output_of_run(0);
  EXPECT_EQ(read_file(hook), "1001\n");
  EXPECT_TRUE(leases().empty());
  EXPECT_THAT(run_as(1001, "lease history").output, HasSubstr("expired"));
}

TEST_F(LeaseTest, LowPriorityStandsStillWhileHighPriorityWorksOnTheSameSlice) {
  start_daemon("lend: {sample_every: 100ms, gate_hold: 500ms}");
  constexpr const char* kSpin =
      "--slice time-slice:1GB --priority {} -- sh -c 'while :; do :; done'";
  start_run(1001, fmt::format(fmt::runtime(kSpin), "low"));
  ASSERT_TRUE(has_active(1));
  const auto low_is_paused = [&] {
    const auto all = leases();
    return !all.empty() && all[0]["owner"]["uid"] == 1001 && all[0]["paused"] == true;
  };

  os::Process& high = start_run(1002, fmt::format(fmt::runtime(kSpin), "high"));
  EXPECT_TRUE(eventually(low_is_paused));
  EXPECT_EQ(std::set<std::string>({*held().begin()}).size(), 1U);
  high.signal_group(SIGTERM);

  EXPECT_TRUE(eventually([&] { return leases().size() == 1 && !low_is_paused(); }));
}

}  // namespace
}  // namespace septet::acceptance
