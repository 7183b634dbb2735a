#include "os/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

namespace septet::os {
namespace {

using ::testing::HasSubstr;

constexpr Duration kPatience = seconds(20);

// A pipe whose writing end a child gets as its standard output.
class ChildOutput {
 public:
  ChildOutput() {
    std::array<int, 2> ends{};
    CHECK(pipe2(ends.data(), O_CLOEXEC) == 0);
    read_.reset(ends[0]);
    write_.reset(ends[1]);
  }
  int write_end() const { return write_.get(); }
  // Everything until the last writer is gone.
  std::string read_all() {
    write_.reset();
    return read_until('\0');
  }
  // Up to the separator or the end.
  std::string read_until(char separator) {
    std::string text;
    char byte = 0;
    while (read(read_.get(), &byte, 1) == 1 && byte != separator) {
      text += byte;
    }
    return text;
  }

 private:
  UniqueFd read_;
  UniqueFd write_;
};

ProcessOptions shell(const std::string& script) {
  ProcessOptions options;
  options.arguments = {"sh", "-c", script};
  return options;
}

TEST(Process, TellsTheExitCode) {
  Result<Process> process = Process::start(shell("exit 7"));

  ASSERT_TRUE(process.ok()) << process.error().text();
  EXPECT_EQ(process->wait(kPatience), (ExitStatus{.code = 7, .signal = 0}));
}

TEST(Process, TellsTheSignalThatKilledIt) {
  Result<Process> process = Process::start(shell("kill -9 $$"));

  ASSERT_TRUE(process.ok());
  const auto status = process->wait(kPatience);

  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->signal, SIGKILL);
  EXPECT_THAT(status->text(), HasSubstr("signal 9"));
}

TEST(Process, GetsItsEnvironmentAndItsOutput) {
  ChildOutput output;
  setenv("SEPTET_TEST_REMOVED", "still here", 1);
  ProcessOptions options = shell("echo \"$SEPTET_TEST_SET,$SEPTET_TEST_REMOVED,$HOME\"");
  options.environment = {{"SEPTET_TEST_SET", "a b"}, {"SEPTET_TEST_REMOVED", ""}};
  options.standard_output = output.write_end();

  Result<Process> process = Process::start(options);

  ASSERT_TRUE(process.ok());
  const char* home = getenv("HOME");
  EXPECT_EQ(output.read_all(), "a b,," + std::string(home != nullptr ? home : "") + "\n");
}

TEST(Process, ReadsNothingFromOurTerminal) {
  Result<Process> process = Process::start(shell("read line && exit 1; exit 0"));

  ASSERT_TRUE(process.ok());
  EXPECT_EQ(process->wait(kPatience), ExitStatus{});
}

TEST(Process, AMissingProgramIsAnErrorThatNamesIt) {
  ProcessOptions options;
  options.arguments = {"no-such-program-anywhere"};

  const Result<Process> process = Process::start(options);

  ASSERT_FALSE(process.ok());
  EXPECT_EQ(process.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(process.error().message, HasSubstr("no-such-program-anywhere"));
}

TEST(Process, AProgramThatIsNoProgramIsAnError) {
  ProcessOptions options;
  options.arguments = {"/proc/self/maps"};

  const Result<Process> process = Process::start(options);

  ASSERT_FALSE(process.ok());
  EXPECT_EQ(process.error().kind, ErrorKind::kPermission);
}

TEST(Process, AGroupThatIsNotThereIsAnError) {
  ProcessOptions options = shell("exit 0");
  options.cgroup_procs_files = {"/nonexistent/cgroup.procs"};

  const Result<Process> process = Process::start(options);

  ASSERT_FALSE(process.ok());
  EXPECT_THAT(process.error().message, HasSubstr("/nonexistent/cgroup.procs"));
}

TEST(Process, ItsDescriptorBecomesReadableAtItsEnd) {
  Result<Process> process = Process::start(shell("exit 0"));

  ASSERT_TRUE(process.ok());
  pollfd waiting{process->pid_fd(), POLLIN, 0};

  EXPECT_EQ(poll(&waiting, 1, 20'000), 1);
  EXPECT_TRUE(process->poll_exit().has_value());
}

TEST(Process, IgnoredAndBlockedSignalsOfTheParentDoNotReachIt) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);

  Result<Process> process = Process::start(shell("kill -TERM $$; sleep 60"));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);

  ASSERT_TRUE(process.ok());
  const auto status = process->wait(kPatience);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->signal, SIGTERM);
}

TEST(Process, DestroyingItKillsItAndItsChildren) {
  ChildOutput output;
  ProcessOptions options = shell("sleep 600 & echo $!; wait");
  options.standard_output = output.write_end();
  {
    Result<Process> process = Process::start(options);
    ASSERT_TRUE(process.ok());
    ASSERT_NE(output.read_until('\n'), "");
  }

  // The pipe ends only when the grandchild, which holds it too, is gone.
  EXPECT_EQ(output.read_all(), "");
}

TEST(Process, DiesWithAParentThatIsKilled) {
  ChildOutput output;
  const pid_t parent = fork();
  if (parent == 0) {
    ProcessOptions options = shell("echo ready; exec sleep 600");
    options.standard_output = output.write_end();
    const Result<Process> process = Process::start(options);
    pause();
    _exit(process.ok() ? 0 : 1);
  }
  ASSERT_EQ(output.read_until('\n'), "ready");

  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);

  EXPECT_EQ(output.read_all(), "");  // the end: the grandchild, which held the pipe, is gone
}

TEST(ProcessStartTime, TellsAProcessFromALaterOneWithItsNumber) {
  const auto own = process_start_time(getpid());

  EXPECT_TRUE(own.has_value());
  EXPECT_EQ(own, process_start_time(getpid()));
  EXPECT_EQ(process_start_time(0x7fffffff), std::nullopt);
}

}  // namespace
}  // namespace septet::os
