#include "os/event_loop.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "os/clock.h"

namespace septet::os {

namespace {

constexpr int kEventsPerRound = 256;
constexpr std::uint64_t kFdBits = 24;  // generation above, descriptor below, in epoll's 64 bits

std::uint64_t pack(int fd, std::uint64_t generation) {
  return generation << kFdBits | static_cast<std::uint64_t>(fd);
}

}  // namespace

EventLoop::EventLoop()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      now_(os::now()) {
  CHECK(epoll_.valid() && wake_.valid());
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = pack(wake_.get(), 0);
  CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) == 0);
}

EventLoop::~EventLoop() = default;

Result<Ok> EventLoop::watch(int fd, std::uint32_t events, Watcher& watcher) {
  CHECK(fd >= 0 && fd < 1 << kFdBits);
  const auto index = static_cast<std::size_t>(fd);
  if (index >= watches_.size()) {
    watches_.resize(index + 1);
  }
  CHECK(watches_[index].watcher == nullptr);
  epoll_event event{};
  event.events = events;
  event.data.u64 = pack(fd, ++generation_);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("cannot watch descriptor {}: {}", fd, std::strerror(errno)));
  }
  watches_[index] = Watch{&watcher, generation_};
  return Ok{};
}

void EventLoop::change(int fd, std::uint32_t events) {
  const Watch& watch = watches_[static_cast<std::size_t>(fd)];
  CHECK(watch.watcher != nullptr);
  epoll_event event{};
  event.events = events;
  event.data.u64 = pack(fd, watch.generation);
  CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0);
}

void EventLoop::unwatch(int fd) {
  const auto index = static_cast<std::size_t>(fd);
  if (fd < 0 || index >= watches_.size() || watches_[index].watcher == nullptr) {
    return;
  }
  watches_[index] = Watch{};
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

EventLoop::Timer EventLoop::call_at(Instant when, std::function<void()> callback) {
  const Timer timer{when, ++timer_sequence_};
  timers_.emplace(timer, std::move(callback));
  return timer;
}

EventLoop::Timer EventLoop::call_after(Duration delay, std::function<void()> callback) {
  return call_at(os::now() + delay, std::move(callback));
}

void EventLoop::cancel(Timer& timer) {
  timers_.erase(timer);
  timer = Timer{};
}

void EventLoop::post(std::function<void()> function) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(function));
  }
  wake();
}

void EventLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake();
}

void EventLoop::wake() {
  const std::uint64_t one = 1;
  // A full counter means a wake-up is already pending.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void EventLoop::run() {
  std::array<epoll_event, kEventsPerRound> events{};
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stop_) {
        stop_ = false;
        return;
      }
    }
    const int count = wait(events);
    CHECK(count >= 0 || errno == EINTR);
    now_ = os::now();
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const auto fd = static_cast<int>(event.data.u64 & ((1U << kFdBits) - 1));
      if (fd == wake_.get()) {
        std::uint64_t drained = 0;
        [[maybe_unused]] const ssize_t got = ::read(fd, &drained, sizeof drained);
        continue;
      }
      const Watch watch = watches_[static_cast<std::size_t>(fd)];
      if (watch.watcher != nullptr && watch.generation == event.data.u64 >> kFdBits) {
        watch.watcher->on_ready(event.events);
      }
    }
    run_timers();
    run_posted();
  }
}

void EventLoop::run_posted() {
  std::vector<std::function<void()>> functions;
  {
    const std::lock_guard lock(mutex_);
    functions.swap(posted_);
  }
  for (const std::function<void()>& function : functions) {
    function();
  }
}

void EventLoop::run_timers() {
  // A timer armed by a callback waits for the next round, so a zero delay cannot spin here.
  const std::uint64_t last = timer_sequence_;
  while (!timers_.empty()) {
    const auto first = timers_.begin();
    if (first->first.when > now_ || first->first.sequence > last) {
      return;
    }
    const std::function<void()> callback = std::move(first->second);
    timers_.erase(first);
    callback();
  }
}

int EventLoop::wait(std::span<epoll_event> events) {
  const auto room = static_cast<int>(events.size());
  if (timers_.empty()) {
    return epoll_wait(epoll_.get(), events.data(), room, -1);
  }
  constexpr Duration kLongest = std::chrono::hours(1);
  const Duration left =
      std::clamp(timers_.begin()->first.when - os::now(), Duration::zero(), kLongest);
  if (waits_nanoseconds_) {
    const auto whole = std::chrono::floor<std::chrono::seconds>(left);
    const timespec timeout{whole.count(), (left - whole).count()};
    const int count = epoll_pwait2(epoll_.get(), events.data(), room, &timeout, nullptr);
    // EPERM: container runtimes that filter system calls refuse the ones they do not know with it.
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) {
      return count;
    }
    waits_nanoseconds_ = false;
  }
  // Rounded up: waking early would spin until the instant has come.
  return epoll_wait(epoll_.get(), events.data(), room,
                    static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
}

}  // namespace septet::os
