// ForegroundCommand: a user's command in the user's own terminal, held at a gate until it may
// start.
//
//   start() forks; the child waits at the gate --open_gate()--> exec CMD
//
// The child stays in our process group and keeps our terminal, so job control, Ctrl-C and Ctrl-Z
// work as if it had been typed there; we ignore those keys while it runs. Between start() and
// open_gate() its pid can be put under limits: nothing of the command has run yet. Unlike Process
// (os/process.h) it reads our standard input. Owned by a verb, one thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "os/process.h"
#include "os/unique_fd.h"

namespace septet::os {

class ForegroundCommand {
 public:
  // environment: on top of our own; an absent value unsets the name. Blocks SIGINT, SIGQUIT,
  // SIGTERM and SIGHUP in this process from here on: they are read by next_signal().
  static Result<ForegroundCommand> start(
      const std::vector<std::string>& arguments,
      const std::vector<std::pair<std::string, std::optional<std::string>>>& environment);
  ForegroundCommand(ForegroundCommand&&) noexcept = default;
  // Kills the command if it still runs.
  ~ForegroundCommand();

  pid_t pid() const { return pid_; }
  // Lets it run. kNotFound or kPermission when there is no such program.
  Result<Ok> open_gate();

  // Readable when the command has ended, and when a signal has come for us.
  int pid_fd() const { return pid_fd_.get(); }
  int signal_fd() const { return signals_.get(); }
  std::optional<ExitStatus> poll_exit();
  // A signal that came, or 0. SIGINT and SIGQUIT reached the command by the terminal already.
  int next_signal();
  void send_signal(int signal);

 private:
  ForegroundCommand() = default;

  pid_t pid_ = -1;
  std::string program_;
  UniqueFd pid_fd_;
  UniqueFd signals_;
  UniqueFd gate_;     // write end: one byte lets the child go
  UniqueFd failure_;  // read end: errno of a failed exec
  std::optional<ExitStatus> exit_;
};

// What a shell would report: the exit code, or 128 plus the signal.
int shell_exit_code(const ExitStatus& status);

}  // namespace septet::os
