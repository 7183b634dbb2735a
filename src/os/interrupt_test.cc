#include "os/interrupt.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace septet::os {
namespace {

// Waits for another thread to set the flag; the test's own time limit is the bound.
void wait_for(const std::atomic<bool>& flag) {
  while (!flag) {
    poll(nullptr, 0, 1);
  }
}

TEST(Interrupt, ASignalSetsTheFlagAndEndsNothing) {
  const auto interrupt = Interrupt::start();
  ASSERT_TRUE(interrupt.ok()) << interrupt.error().text();
  EXPECT_FALSE((*interrupt)->requested());

  kill(getpid(), SIGINT);

  wait_for((*interrupt)->requested());
}

TEST(Interrupt, ASecondSignalEndsTheProcess) {
  const pid_t child = fork();
  if (child == 0) {
    const auto interrupt = Interrupt::start();
    kill(getpid(), SIGTERM);
    wait_for((*interrupt)->requested());
    kill(getpid(), SIGTERM);
    while (true) {
      pause();
    }
  }
  int status = 0;
  waitpid(child, &status, 0);

  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(Interrupt, AfterItsEndSignalsActAsBefore) {
  const pid_t child = fork();
  if (child == 0) {
    Interrupt::start().value().reset();
    kill(getpid(), SIGHUP);
    while (true) {
      pause();
    }
  }
  int status = 0;
  waitpid(child, &status, 0);

  EXPECT_EQ(WTERMSIG(status), SIGHUP);
}

}  // namespace
}  // namespace septet::os
