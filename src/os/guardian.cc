#include "os/guardian.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "os/owned_folder.h"
#include "os/unique_fd.h"

namespace septet::os {
namespace {

// Away from the terminal and from every descriptor of ours but the one that tells of our end: a
// pipe held open here would keep its reader waiting.
void detach(int parent_fd) {
  setsid();
  prctl(PR_SET_NAME, "septet-guardian");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    ::signal(signal, SIG_IGN);
  }
  const int null = open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    dup2(null, standard);
  }
  const auto parent = static_cast<unsigned>(parent_fd);
  syscall(SYS_close_range, 3U, parent - 1, 0U);
  syscall(SYS_close_range, parent + 1, ~0U, 0U);
}

[[noreturn]] void guard(int parent_fd, const std::optional<CgroupMounts>& mounts) {
  detach(parent_fd);
  pollfd waiting{parent_fd, POLLIN, 0};
  while (poll(&waiting, 1, -1) < 0 && errno == EINTR) {
  }
  if (mounts) {
    sweep_cgroups(*mounts);
  }
  sweep_folders();
  _exit(0);
}

}  // namespace

Result<std::unique_ptr<Guardian>> Guardian::start(const std::optional<CgroupMounts>& mounts) {
  // Opened here and inherited: were it opened by the child, we might have died before.
  const UniqueFd self(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  const pid_t pid = self.valid() ? fork() : -1;
  if (pid == 0) {
    guard(self.get(), mounts);
  }
  if (pid < 0) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("cannot start the guardian process: {}", std::strerror(errno)));
  }
  return std::unique_ptr<Guardian>(new Guardian(pid));
}

Guardian::~Guardian() {
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace septet::os
