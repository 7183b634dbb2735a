// Process: one child process, started with exactly the descriptors, environment and control groups
// that were asked for, and never left behind.
//
// Owned by whoever started it; any one thread at a time. The child gets its own process group, so a
// Ctrl-C at the terminal reaches only the parent, which then stops its children in order. With
// kill_with_parent the kernel kills the child when the *thread* that started it ends (prctl(2),
// PR_SET_PDEATHSIG), so start such children from a thread that lives as long as they may.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "os/unique_fd.h"

namespace septet::os {

// How a process ended: an exit code, or the signal that killed it.
struct ExitStatus {
  int code = 0;
  int signal = 0;  // 0 = it exited by itself

  bool success() const { return signal == 0 && code == 0; }
  // "exit code 3" or "signal 9 (Killed)".
  std::string text() const;
  bool operator==(const ExitStatus&) const = default;
};

struct ProcessOptions {
  // The program (looked up in PATH unless it has a '/') and its arguments.
  std::vector<std::string> arguments;
  // Set in the child on top of our own environment; an empty value unsets the name.
  std::vector<std::pair<std::string, std::string>> environment;
  // Where standard output and error go: a descriptor of ours, or -1 to share our own. Standard
  // input is always /dev/null.
  int standard_output = -1;
  int standard_error = -1;
  // cgroup.procs files that the child writes itself into before it becomes the program.
  std::vector<std::string> cgroup_procs_files;
  // SIGKILL for the child when the starting thread ends; see above.
  bool kill_with_parent = true;
};

class Process {
 public:
  // Starts the program. The error names the program and the step that failed: kNotFound when there
  // is no such program, kPermission when it or a group may not be used.
  static Result<Process> start(const ProcessOptions& options);

  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;
  // Kills the process group and reaps the child if it still runs.
  ~Process();

  pid_t pid() const { return pid_; }
  // Readable (EPOLLIN) once the child has ended; for an EventLoop.
  int pid_fd() const { return pid_fd_.get(); }

  // The exit status if the child has ended. Reaps it; later calls answer the same.
  std::optional<ExitStatus> poll_exit();
  // Waits at most the timeout for the end.
  std::optional<ExitStatus> wait(Duration timeout);
  // Sends the signal to the child, or to its whole group; harmless when it has ended.
  void send_signal(int signal);
  void signal_group(int signal);

 private:
  Process(pid_t pid, UniqueFd pid_fd) : pid_(pid), pid_fd_(std::move(pid_fd)) {}
  void kill_and_reap();

  pid_t pid_ = -1;
  UniqueFd pid_fd_;
  std::optional<ExitStatus> exit_;
};

// When the process started, in clock ticks since boot; with the pid it names a process for good.
// Empty when there is no such process, or it has ended.
std::optional<std::uint64_t> process_start_time(pid_t pid);

// The path of the running program itself, for starting more of it.
std::string own_program_path();

// How this program was called, words with blanks in quotes; for reports that can be repeated.
std::string own_command_line();

}  // namespace septet::os
