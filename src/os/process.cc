#include "os/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "os/clock.h"

extern char** environ;

namespace septet::os {
namespace {

// Which step the child was at when it failed; sent to the parent with errno.
enum class Step : int { kGroup, kCgroup, kParent, kStandardStreams, kExec };

struct Failure {
  Step step = Step::kExec;
  int reason = 0;
};

// Everything the child needs, made ready before fork: between fork and exec only async-signal-safe
// calls are allowed, because other threads of the parent may hold locks.
struct Prepared {
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::vector<char*> argument_pointers;
  std::vector<char*> environment_pointers;
  std::vector<UniqueFd> cgroup_files;
  UniqueFd null_input;
  UniqueFd failure_read;
  UniqueFd failure_write;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) {
    result.push_back(text.data());
  }
  result.push_back(nullptr);
  return result;
}

Result<std::string> find_program(const std::string& name) {
  const Error missing =
      make_error(ErrorKind::kNotFound, fmt::format("cannot start '{}': no such program", name),
                 "check the name and PATH");
  if (name.find('/') != std::string::npos) {
    return access(name.c_str(), F_OK) == 0 ? Result<std::string>(name) : missing;
  }
  const char* path = getenv("PATH");
  for (const std::string_view folder : split(path != nullptr ? path : "/usr/bin:/bin", ':')) {
    const std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return missing;
}

std::vector<std::string> child_environment(const ProcessOptions& options) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& change : options.environment) {
      replaced = replaced || change.first == name;
    }
    if (!replaced) {
      result.emplace_back(text);
    }
  }
  for (const auto& [name, value] : options.environment) {
    if (!value.empty()) {
      result.push_back(name + "=" + value);
    }
  }
  return result;
}

Result<Ok> open_cgroups(const ProcessOptions& options, Prepared& prepared) {
  for (const std::string& file : options.cgroup_procs_files) {
    prepared.cgroup_files.emplace_back(open(file.c_str(), O_WRONLY | O_CLOEXEC));
    if (!prepared.cgroup_files.back().valid()) {
      return make_error(errno == EACCES ? ErrorKind::kPermission : ErrorKind::kFailed,
                        fmt::format("cannot start '{}' in control group {}: {}",
                                    options.arguments.front(), file, std::strerror(errno)));
    }
  }
  return Ok{};
}

Result<Prepared> prepare(const ProcessOptions& options) {
  CHECK(!options.arguments.empty());
  Prepared prepared;
  Result<std::string> program = find_program(options.arguments.front());
  if (!program.ok()) {
    return program.error();
  }
  prepared.program = *std::move(program);
  prepared.arguments = options.arguments;
  prepared.environment = child_environment(options);
  prepared.argument_pointers = pointers(prepared.arguments);
  prepared.environment_pointers = pointers(prepared.environment);
  SEPTET_TRY(open_cgroups(options, prepared));
  prepared.null_input.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::array<int, 2> ends{};
  if (!prepared.null_input.valid() || pipe2(ends.data(), O_CLOEXEC) != 0) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("cannot start '{}': {}", prepared.program, std::strerror(errno)));
  }
  prepared.failure_read.reset(ends[0]);
  prepared.failure_write.reset(ends[1]);
  return prepared;
}

[[noreturn]] void fail_child(const Prepared& prepared, Step step) {
  const Failure failure{step, errno};
  const ssize_t written = write(prepared.failure_write.get(), &failure, sizeof failure);
  _exit(written == sizeof failure ? 127 : 126);
}

void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) {
      ::signal(signal, SIG_DFL);
    }
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Makes `from` the child's descriptor `to`. dup2 of a descriptor onto itself would keep its
// close-on-exec flag, so that case clears the flag instead.
bool place_descriptor(int from, int to) {
  if (from < 0) {
    return true;
  }
  if (from == to) {
    return fcntl(to, F_SETFD, 0) == 0;
  }
  return dup2(from, to) >= 0;
}

// Runs in the child between fork and exec.
[[noreturn]] void become_program(const ProcessOptions& options, const Prepared& prepared,
                                 pid_t parent) {
  if (setpgid(0, 0) != 0) {
    fail_child(prepared, Step::kGroup);
  }
  for (const UniqueFd& file : prepared.cgroup_files) {
    if (write(file.get(), "0\n", 2) != 2) {
      fail_child(prepared, Step::kCgroup);
    }
  }
  if (options.kill_with_parent) {
    // The parent may have died before prctl took hold: then nobody would ever send the signal.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
      fail_child(prepared, Step::kParent);
    }
  }
  reset_signals();
  if (!place_descriptor(prepared.null_input.get(), STDIN_FILENO) ||
      !place_descriptor(options.standard_output, STDOUT_FILENO) ||
      !place_descriptor(options.standard_error, STDERR_FILENO)) {
    fail_child(prepared, Step::kStandardStreams);
  }
  execve(prepared.program.c_str(), prepared.argument_pointers.data(),
         prepared.environment_pointers.data());
  fail_child(prepared, Step::kExec);
}

Error start_error(const Prepared& prepared, const Failure& failure) {
  const char* doing = "";
  switch (failure.step) {
    case Step::kGroup:
      doing = "making its process group: ";
      break;
    case Step::kCgroup:
      doing = "entering its control group: ";
      break;
    case Step::kParent:
      doing = "tying it to its parent: ";
      break;
    case Step::kStandardStreams:
      doing = "setting up its standard streams: ";
      break;
    case Step::kExec:
      break;
  }
  const ErrorKind kind = failure.reason == ENOENT   ? ErrorKind::kNotFound
                         : failure.reason == EACCES ? ErrorKind::kPermission
                                                    : ErrorKind::kFailed;
  return make_error(kind, fmt::format("cannot start '{}': {}{}", prepared.program, doing,
                                      std::strerror(failure.reason)));
}

ExitStatus from_wait_status(int status) {
  ExitStatus result;
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
  } else {
    result.code = WEXITSTATUS(status);
  }
  return result;
}

}  // namespace

std::string ExitStatus::text() const {
  return signal != 0 ? fmt::format("signal {} ({})", signal, strsignal(signal))
                     : fmt::format("exit code {}", code);
}

Result<Process> Process::start(const ProcessOptions& options) {
  Result<Prepared> prepared = prepare(options);
  if (!prepared.ok()) {
    return prepared.error();
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    become_program(options, *prepared, parent);
  }
  if (pid < 0) {
    return make_error(ErrorKind::kFailed, fmt::format("cannot start '{}': {}", prepared->program,
                                                      std::strerror(errno)));
  }
  // Not reaped yet, so the pid cannot have been given to another process.
  Process process(pid, UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))));
  const int pid_fd_reason = errno;
  prepared->failure_write.reset();
  Failure failure;
  ssize_t got = 0;
  do {
    got = read(prepared->failure_read.get(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got != 0) {
    return start_error(*prepared, failure);  // the destructor reaps the child
  }
  if (!process.pid_fd_.valid()) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("cannot watch '{}': pidfd_open: {}", prepared->program,
                                  std::strerror(pid_fd_reason)),
                      "Linux 5.3 or newer is needed");
  }
  return process;
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pid_fd_(std::move(other.pid_fd_)),
      exit_(std::exchange(other.exit_, std::nullopt)) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    kill_and_reap();
    pid_ = std::exchange(other.pid_, -1);
    pid_fd_ = std::move(other.pid_fd_);
    exit_ = std::exchange(other.exit_, std::nullopt);
  }
  return *this;
}

Process::~Process() { kill_and_reap(); }

void Process::kill_and_reap() {
  if (pid_ <= 0 || exit_) {
    return;
  }
  // Until it is reaped the group keeps its number, so this reaches what an ended child left behind.
  signal_group(SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  exit_ = from_wait_status(status);
}

std::optional<ExitStatus> Process::poll_exit() {
  if (!exit_ && pid_ > 0) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      exit_ = from_wait_status(status);
    }
  }
  return exit_;
}

std::optional<ExitStatus> Process::wait(Duration timeout) {
  const Instant deadline = now() + timeout;
  while (!poll_exit()) {
    const Duration left = deadline - now();
    if (left <= Duration::zero()) {
      return std::nullopt;
    }
    pollfd waiting{pid_fd_.get(), POLLIN, 0};
    poll(&waiting, 1, static_cast<int>((left + milliseconds(1) - Duration(1)) / milliseconds(1)));
  }
  return exit_;
}

void Process::send_signal(int signal) {
  if (pid_ > 0 && !exit_) {
    kill(pid_, signal);
  }
}

void Process::signal_group(int signal) {
  if (pid_ > 0 && !exit_) {
    // Before setpgid has run in the child there is no such group yet: then the child alone.
    if (kill(-pid_, signal) != 0) {
      kill(pid_, signal);
    }
  }
}

std::optional<std::uint64_t> process_start_time(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) {
    return std::nullopt;
  }
  // proc(5): field 2 is the name in parentheses and may hold anything; field 22 is the start time.
  const std::size_t close = line.rfind(')');
  if (close == std::string::npos) {
    return std::nullopt;
  }
  std::istringstream fields(line.substr(close + 1));
  std::string field;
  for (int number = 3; number <= 22 && fields >> field; ++number) {
    if (number == 3 && (field == "Z" || field == "X")) {
      return std::nullopt;  // ended, only not reaped by its parent yet
    }
  }
  return parse_uint(field);
}

std::string own_program_path() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
}

std::string own_command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::string line;
  std::string word;
  while (std::getline(file, word, '\0')) {
    const bool quote = word.empty() || word.find_first_of(" \t'\"$*") != std::string::npos;
    line += (line.empty() ? "" : " ") + (quote ? "'" + word + "'" : word);
  }
  return line;
}

}  // namespace septet::os
