// The lease daemon and the commands on leases are killed, and nothing is lost or lent twice.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <set>

#include "base/text.h"
#include "lease_machine.h"

namespace septet::acceptance {
namespace {

using ::testing::HasSubstr;

TEST_F(LeaseTest, ASlicesCommandThatIsKilledGivesItBackWithItsChildren) {
  start_daemon();
  const std::string pids = shared_file("pids");
  os::Process& run = start_run(
      1001, fmt::format("--slice 1g.5gb -- sh -c 'setsid sleep 600 & echo $! > {}; wait'", pids));
  ASSERT_TRUE(has_active(1));
  ASSERT_TRUE(eventually([&] { return !read_file(pids).empty(); }));
  const auto child = parse_int(trim(read_file(pids)));
  ASSERT_TRUE(child);

  kill(run.pid(), SIGKILL);

  EXPECT_TRUE(eventually([&] { return leases().empty(); }));
  EXPECT_FALSE(os::process_start_time(static_cast<pid_t>(*child)));
}

TEST_F(LeaseTest, TheDaemonComesBackAndLosesNothing) {
  start_daemon();
  os::Process& run = start_run(1001, "--slice 1g.5gb -- sleep 600");
  ASSERT_TRUE(has_active(1));
  const std::multiset<std::string> before = held();

  kill_daemon();
  start_daemon();
  EXPECT_TRUE(eventually([&] { return output_of_run(0).find("held again") != std::string::npos; }))
      << output_of_run(0);

  EXPECT_EQ(held(), before);
  EXPECT_FALSE(run.poll_exit());
  for (unsigned i = 0; i < 6; ++i) {
    start_run(1002, "--slice 1g.5gb -- sleep 600");
  }
  ASSERT_TRUE(has_active(7));
  EXPECT_EQ(run_as(1002, "run --slice 1g.5gb -- true").exit_code, 8);
}

TEST_F(LeaseTest, WhoWaitsKeepsItsPlaceWhenTheDaemonComesBack) {
  start_daemon();
  for (unsigned i = 0; i < 7; ++i) {
    start_run(1001, "--slice 1g.5gb -- sleep 600");
  }
  ASSERT_TRUE(has_active(7));
  start_run(1002, "--slice 1g.5gb --queue -- sleep 600");
  ASSERT_TRUE(eventually([&] { return leases("queued").size() == 1; }));

  kill_daemon();
  start_daemon();
  ASSERT_TRUE(eventually([&] { return output_of_run(7).find("held again") != std::string::npos; }))
      << output_of_run(7);
  runs_[0]->signal_group(SIGTERM);

  EXPECT_TRUE(eventually([&] { return leases("queued").empty(); }));
  EXPECT_TRUE(has_active(7));
}

TEST_F(LeaseTest, AHolderThatDiesWithTheDaemonIsFoundOut) {
  start_daemon("lend: {adopt_within: 1s}");
  os::Process& run = start_run(1001, "--slice 1g.5gb -- sleep 600");
  ASSERT_TRUE(has_active(1));
  kill_daemon();
  kill(run.pid(), SIGKILL);

  start_daemon("lend: {adopt_within: 1s}");

  EXPECT_TRUE(eventually([&] { return leases().empty(); }));
}

TEST_F(LeaseTest, ADamagedLedgerIsLeftAsItIsAndTheWayOutLendsNothingTwice) {
  start_daemon();
  os::Process& run = start_run(1001, "--slice 1g.5gb -- sleep 600");
  ASSERT_TRUE(has_active(1));
  kill_daemon();
  const std::string damaged(40960, 'x');
  // The write-ahead log alone would bring back what was written last.
  (void)remove((ledger() + "-wal").c_str());
  std::ofstream(ledger()) << damaged;

  const Outcome refused =
      machine_.septet(fmt::format("lend-daemon --socket {} --ledger {}", socket(), ledger()));

  EXPECT_EQ(refused.exit_code, 1) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("left as it is"));
  EXPECT_EQ(read_file(ledger()), damaged);
  for (const char* part : {"", "-wal", "-shm"}) {
    (void)rename((ledger() + part).c_str(), (machine_.folder() + "/damaged" + part).c_str());
  }
  start_daemon();
  // What ran on the forgotten lease has ended before its slice can be lent again.
  EXPECT_TRUE(run.wait(kPatience));
  EXPECT_TRUE(leases().empty());
}

}  // namespace
}  // namespace septet::acceptance
