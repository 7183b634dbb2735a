#include "os/interrupt.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace septet::os {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

sigset_t signal_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) {
    sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

Result<std::unique_ptr<Interrupt>> Interrupt::start() {
  const sigset_t set = signal_set();
  sigset_t before;
  sigemptyset(&before);
  UniqueFd signals(signalfd(-1, &set, SFD_CLOEXEC));
  UniqueFd leave(eventfd(0, EFD_CLOEXEC));
  // Blocked in this thread and in all that it starts, so that only the signalfd takes them.
  if (!signals.valid() || !leave.valid() || pthread_sigmask(SIG_BLOCK, &set, &before) != 0) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("cannot watch for Ctrl-C: {}", std::strerror(errno)));
  }
  return std::unique_ptr<Interrupt>(new Interrupt(std::move(signals), std::move(leave), before));
}

Interrupt::Interrupt(UniqueFd signals, UniqueFd leave, const sigset_t& before)
    : signals_(std::move(signals)),
      leave_(std::move(leave)),
      before_(before),
      thread_([this] { watch(); }) {}

Interrupt::~Interrupt() {
  const std::uint64_t one = 1;
  if (write(leave_.get(), &one, sizeof one) == sizeof one) {
    thread_.join();
  } else {
    thread_.detach();
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Interrupt::watch() {
  while (true) {
    std::array<pollfd, 2> waiting = {{{signals_.get(), POLLIN, 0}, {leave_.get(), POLLIN, 0}}};
    if (poll(waiting.data(), waiting.size(), -1) < 0) {
      continue;  // EINTR
    }
    if (waiting[1].revents != 0) {
      return;
    }
    signalfd_siginfo info{};
    if (read(signals_.get(), &info, sizeof info) == sizeof info && requested_.exchange(true)) {
      const int signal = static_cast<int>(info.ssi_signo);
      ::signal(signal, SIG_DFL);
      const sigset_t set = signal_set();
      pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
      raise(signal);
    }
  }
}

}  // namespace septet::os
