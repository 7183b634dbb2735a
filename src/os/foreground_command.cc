#include "os/foreground_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

extern char** environ;

namespace septet::os {

namespace {

constexpr int kSignalExitBase = 128;

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) {
    sigaddset(&set, signal);
  }
  return set;
}

std::vector<std::string> merged_environment(
    const std::vector<std::pair<std::string, std::optional<std::string>>>& changes) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool is_changed = std::any_of(changes.begin(), changes.end(),
                                        [&](const auto& change) { return change.first == name; });
    if (!is_changed) {
      merged.emplace_back(text);
    }
  }
  for (const auto& [name, value] : changes) {
    if (value) {
      merged.push_back(name + "=" + *value);
    }
  }
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) {
    result.push_back(text.data());
  }
  result.push_back(nullptr);
  return result;
}

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// In the child, between fork and exec: waits for the byte, becomes the program, or reports why not.
[[noreturn]] void run_child(int gate, int failure, const sigset_t& mask, pid_t parent,
                            char* const* arguments, char* const* environment) {
  // Should we be killed before the gate opens, nothing is left waiting at it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  char byte = 0;
  if (getppid() != parent || read(gate, &byte, 1) != 1) {
    _exit(127);
  }
  // From here on the command outlives us: whoever holds its lease takes it down.
  prctl(PR_SET_PDEATHSIG, 0);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvpe(arguments[0], arguments, environment);
  const int reason = errno;
  [[maybe_unused]] const ssize_t told = write(failure, &reason, sizeof reason);
  _exit(127);
}

}  // namespace

Result<ForegroundCommand> ForegroundCommand::start(
    const std::vector<std::string>& arguments,
    const std::vector<std::pair<std::string, std::optional<std::string>>>& environment) {
  if (arguments.empty()) {
    return make_error(ErrorKind::kUsage, "there is no command to run");
  }
  Result<Pipe> gate = make_pipe();
  SEPTET_TRY(gate);
  Result<Pipe> failure = make_pipe();
  SEPTET_TRY(failure);
  std::vector<std::string> argument_texts = arguments;
  std::vector<std::string> environment_texts = merged_environment(environment);
  const std::vector<char*> argument_pointers = pointers(argument_texts);
  const std::vector<char*> environment_pointers = pointers(environment_texts);

  ForegroundCommand command;
  command.program_ = arguments[0];
  const sigset_t handled = handled_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &handled, &before);
  command.signals_.reset(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("cannot start '{}': {}", arguments[0], std::strerror(errno)));
  }
  if (pid == 0) {
    // Only the parent's copy keeps the gate and our end of the failure pipe open.
    close(gate->write.get());
    run_child(gate->read.get(), failure->write.get(), before, parent, argument_pointers.data(),
              environment_pointers.data());
  }
  command.pid_ = pid;
  command.pid_fd_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  command.gate_ = std::move(gate->write);
  command.failure_ = std::move(failure->read);
  return command;
}

ForegroundCommand::~ForegroundCommand() {
  // A moved-from object has no descriptor and owns no child.
  if (pid_fd_.valid() && !poll_exit()) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

Result<Ok> ForegroundCommand::open_gate() {
  const char byte = 1;
  if (write(gate_.get(), &byte, 1) != 1) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("cannot start '{}': its process has ended", program_));
  }
  gate_.reset();
  int reason = 0;
  ssize_t got = 0;
  do {
    got = read(failure_.get(), &reason, sizeof reason);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof reason)) {
    return Ok{};  // the pipe closed at exec
  }
  const ErrorKind kind = reason == ENOENT || reason == ENOTDIR ? ErrorKind::kNotFound
                         : reason == EACCES                    ? ErrorKind::kPermission
                                                               : ErrorKind::kFailed;
  return make_error(kind, fmt::format("cannot start '{}': {}", program_, std::strerror(reason)));
}

std::optional<ExitStatus> ForegroundCommand::poll_exit() {
  if (exit_) {
    return exit_;
  }
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) {
    return std::nullopt;
  }
  exit_ =
      WIFSIGNALED(status) ? ExitStatus{0, WTERMSIG(status)} : ExitStatus{WEXITSTATUS(status), 0};
  return exit_;
}

int ForegroundCommand::next_signal() {
  signalfd_siginfo info{};
  if (read(signals_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) {
    return 0;
  }
  return static_cast<int>(info.ssi_signo);
}

void ForegroundCommand::send_signal(int signal) {
  if (!poll_exit()) {
    kill(pid_, signal);
  }
}

int shell_exit_code(const ExitStatus& status) {
  return status.signal != 0 ? kSignalExitBase + status.signal : status.code;
}

}  // namespace septet::os
