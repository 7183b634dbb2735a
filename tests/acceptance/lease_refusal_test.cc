// What the lease daemon and its verbs refuse, in which words, and that nothing is touched by it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>

#include <map>

#include "lease_machine.h"

namespace septet::acceptance {
namespace {

using ::testing::HasSubstr;

TEST_F(LeaseTest, AQuotaHoldsAndSaysSo) {
  start_daemon("lend: {quota: {leases: 2}}");
  start_run(1001, "--slice 1g.5gb -- sleep 600");
  start_run(1001, "--slice 1g.5gb -- sleep 600");
  ASSERT_TRUE(has_active(2));

  const Outcome third = run_as(1001, "run --slice 1g.5gb -- true");
  const Outcome other = run_as(1002, "run --slice 1g.5gb -- true");

  EXPECT_EQ(third.exit_code, 8);
  EXPECT_THAT(third.output, HasSubstr("quota"));
  EXPECT_EQ(other.exit_code, 0) << other.output;
}

// Two users of this machine with the same primary group, not root's.
struct Group {
  std::string name;
  std::vector<unsigned> members;
};
std::optional<Group> group_of_two() {
  std::map<gid_t, std::vector<unsigned>> users;
  setpwent();
  while (const passwd* user = getpwent()) {
    users[user->pw_gid].push_back(user->pw_uid);
  }
  endpwent();
  for (const auto& [gid, members] : users) {
    const group* entry = gid == 0 || members.size() < 2 ? nullptr : getgrgid(gid);
    if (entry != nullptr) {
      return Group{entry->gr_name, members};
    }
  }
  return std::nullopt;
}

TEST_F(LeaseTest, TheQuotaOfAGroupCountsAllItsMembers) {
  const std::optional<Group> group = group_of_two();
  if (!group) {
    GTEST_SKIP() << "no two users of this machine share a group";
  }
  start_daemon(fmt::format("lend: {{groups: {{{}: {{gpu_percent: 15}}}}}}", group->name));
  start_run(group->members[0], "--slice 1g.5gb -- sleep 600");
  ASSERT_TRUE(has_active(1));

  const Outcome second = run_as(group->members[1], "run --slice 1g.5gb -- true");
  const Outcome stranger = run_as(1002, "run --slice 1g.5gb -- true");

  EXPECT_EQ(second.exit_code, 8) << second.output;
  EXPECT_THAT(second.output, HasSubstr("the quota of group " + group->name));
  EXPECT_EQ(stranger.exit_code, 0) << stranger.output;
}

TEST_F(LeaseTest, ALeaseThatHasExpiredIsNotRenewed) {
  start_daemon();
  const Outcome acquired = run_as(1001, "-o json lease acquire --slice 1g.5gb --for 1s");
  ASSERT_EQ(acquired.exit_code, 0) << acquired.output;
  ASSERT_TRUE(eventually([&] { return leases().empty(); }));

  const Outcome renewed = run_as(1001, "lease renew 1 --for 1h");

  EXPECT_EQ(renewed.exit_code, 6) << renewed.output;
  EXPECT_THAT(renewed.output, HasSubstr("lease history"));
}

TEST_F(LeaseTest, ACommandThatDoesNotExistReturnsTheSlice) {
  start_daemon();

  const Outcome outcome = run_as(1001, "run --slice 1g.5gb -- /no/such/program");

  EXPECT_EQ(outcome.exit_code, 6) << outcome.output;
  EXPECT_TRUE(eventually([&] { return leases().empty(); }));
}

TEST_F(LeaseTest, NobodyTouchesAnothersLease) {
  start_daemon();
  const Outcome acquired = run_as(1001, "-o json lease acquire --slice 1g.5gb --for 1h");
  ASSERT_EQ(acquired.exit_code, 0) << acquired.output;
  ASSERT_TRUE(has_active(1));
  const auto id = leases()[0]["id"].get<std::uint64_t>();

  const Outcome released = run_as(1002, fmt::format("lease release {}", id));
  const Outcome renewed = run_as(1002, fmt::format("lease renew {} --for 9h", id));

  EXPECT_EQ(released.exit_code, 7) << released.output;
  EXPECT_EQ(renewed.exit_code, 7) << renewed.output;
  EXPECT_EQ(leases("active").size(), 1U);
  EXPECT_EQ(run_as(1001, fmt::format("lease release {}", id)).exit_code, 0);
}

TEST_F(LeaseTest, AnImpossibleSliceNamesWhatFits) {
  start_daemon();

  const Outcome outcome = run_as(1001, "run --slice 9g.90gb -- true");

  EXPECT_EQ(outcome.exit_code, 8);
  EXPECT_THAT(outcome.output, HasSubstr("7 of 1g.5gb"));
}

TEST_F(LeaseTest, ASecondDaemonOnTheSameLedgerIsRefused) {
  start_daemon();

  const Outcome second = machine_.septet(
      fmt::format("lend-daemon --socket {0}/other.sock --ledger {0}/ledger", machine_.folder()));

  EXPECT_EQ(second.exit_code, 3) << second.output;
  EXPECT_THAT(second.output, HasSubstr("another daemon"));
}

}  // namespace
}  // namespace septet::acceptance
