#include "os/foreground_command.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <fstream>

namespace septet::os {
namespace {

ExitStatus wait_for(ForegroundCommand& command) {
  pollfd entry{command.pid_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&entry, 1, 30000), 1);
  const auto status = command.poll_exit();
  return status.value_or(ExitStatus{-1, 0});
}

class ForegroundCommandTest : public ::testing::Test {
 protected:
  // Other tests of this process want their signals.
  void SetUp() override { sigprocmask(SIG_BLOCK, nullptr, &before_); }
  void TearDown() override { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  sigset_t before_;
};

TEST_F(ForegroundCommandTest, PassesTheExitCodeOn) {
  auto command = ForegroundCommand::start({"sh", "-c", "exit 42"}, {});
  ASSERT_TRUE(command.ok());
  ASSERT_TRUE(command->open_gate().ok());

  EXPECT_EQ(shell_exit_code(wait_for(*command)), 42);
}

TEST_F(ForegroundCommandTest, NothingRunsBeforeTheGateOpens) {
  auto command = ForegroundCommand::start({"sh", "-c", "exit 0"}, {});
  ASSERT_TRUE(command.ok());

  std::ifstream name("/proc/" + std::to_string(command->pid()) + "/comm");
  std::string text;
  name >> text;

  EXPECT_NE(text, "sh");
  EXPECT_FALSE(command->poll_exit());
}

TEST_F(ForegroundCommandTest, SetsAndUnsetsVariables) {
  setenv("SEPTET_TEST_STALE", "1", 1);
  auto command = ForegroundCommand::start(
      {"sh", "-c", "test \"$SEPTET_TEST_NEW\" = yes && test -z \"${SEPTET_TEST_STALE+x}\""},
      {{"SEPTET_TEST_NEW", "yes"}, {"SEPTET_TEST_STALE", std::nullopt}});
  ASSERT_TRUE(command.ok());
  ASSERT_TRUE(command->open_gate().ok());

  EXPECT_TRUE(wait_for(*command).success());
}

TEST_F(ForegroundCommandTest, AProgramThatDoesNotExistIsNotFound) {
  auto command = ForegroundCommand::start({"/no/such/program"}, {});
  ASSERT_TRUE(command.ok());

  const auto opened = command->open_gate();

  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().kind, ErrorKind::kNotFound);
}

TEST_F(ForegroundCommandTest, ASignalForUsIsReadNotDied) {
  auto command = ForegroundCommand::start({"sleep", "600"}, {});
  ASSERT_TRUE(command.ok());
  ASSERT_TRUE(command->open_gate().ok());

  raise(SIGTERM);
  EXPECT_EQ(command->next_signal(), SIGTERM);
  EXPECT_EQ(command->next_signal(), 0);
  command->send_signal(SIGTERM);

  EXPECT_EQ(shell_exit_code(wait_for(*command)), 128 + SIGTERM);
}

}  // namespace
}  // namespace septet::os
