#include "os/guardian.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "os/clock.h"
#include "os/owned_folder.h"
#include "os/process.h"

namespace septet::os {
namespace {

constexpr Duration kPatience = seconds(30);

// Waits until the condition holds; what it waits for is another process.
template <typename Condition>
bool eventually(Condition condition) {
  const Instant deadline = now() + kPatience;
  while (!condition()) {
    if (now() > deadline) {
      return false;
    }
    poll(nullptr, 0, 2);
  }
  return true;
}

// A process with a guardian, a folder and, where it may, a group with a process in it that would
// outlive it. It writes the folder's path to the pipe and waits to be killed.
[[noreturn]] void live_until_killed(int pipe_end, const std::optional<CgroupMounts>& mounts) {
  const auto guardian = Guardian::start(mounts).value().release();
  const auto folder = OwnedFolder::create("guarded").value().release();
  ProcessOptions options;
  options.arguments = {"sleep", "600"};
  options.kill_with_parent = false;
  if (mounts) {
    options.cgroup_procs_files =
        Cgroup::create(*mounts, "guarded", {.cpus = 0.5}).value().release()->procs_files();
  }
  const Result<Process> sleeper = Process::start(options);
  std::string message = folder->path() + "\n" + std::to_string(sleeper->pid()) + "\n";
  if (guardian == nullptr || write(pipe_end, message.data(), message.size()) < 0) {
    _exit(1);
  }
  while (true) {
    pause();
  }
}

std::string read_line(int fd) {
  std::string line;
  char byte = 0;
  while (read(fd, &byte, 1) == 1 && byte != '\n') {
    line += byte;
  }
  return line;
}

TEST(Guardian, RemovesWhatAKilledProcessLeft) {
  const Result<CgroupMounts> found = find_cgroups();
  const std::optional<CgroupMounts> mounts =
      found.ok() ? std::optional<CgroupMounts>(*found) : std::nullopt;
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    live_until_killed(ends[1], mounts);
  }
  close(ends[1]);
  const std::string folder = read_line(ends[0]);
  const pid_t sleeper = std::stoi(read_line(ends[0]));
  ASSERT_TRUE(std::filesystem::exists(folder));

  kill(owner, SIGKILL);  // and it stays a zombie until the end of this test

  EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(folder); }));
  if (mounts) {
    EXPECT_TRUE(eventually([&] { return !process_start_time(sleeper).has_value(); }));
    for (const std::string& parent : mounts->folders) {
      for (const auto& entry : std::filesystem::directory_iterator(parent)) {
        EXPECT_FALSE(entry.path().filename().string().ends_with(".guarded")) << entry.path();
      }
    }
  } else {
    kill(sleeper, SIGKILL);
  }
  EXPECT_EQ(read_line(ends[0]), "");  // the guardian is gone too: nobody holds the pipe
  waitpid(owner, nullptr, 0);
  close(ends[0]);
}

TEST(Guardian, EndsWithItsOwnerWhenThereIsNothingToDo) {
  auto guardian = Guardian::start(std::nullopt);
  ASSERT_TRUE(guardian.ok()) << guardian.error().text();

  guardian->reset();

  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
}

}  // namespace
}  // namespace septet::os
