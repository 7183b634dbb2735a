// EventLoop: one epoll reactor, run by one thread.
//
// Owned by whoever runs the thread. Every method belongs to that thread, except post() and stop(),
// which any thread may call. Watchers and timers are called from run(); they may watch, unwatch and
// destroy anything, themselves included.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "os/unique_fd.h"

namespace septet::os {

class EventLoop {
 public:
  // Gets told when its descriptor is ready.
  class Watcher {
   public:
    virtual ~Watcher() = default;
    // events: a set of EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP, EPOLLRDHUP.
    virtual void on_ready(std::uint32_t events) = 0;
  };

  // Names one timer; default-constructed it names none.
  struct Timer {
    Instant when{};
    std::uint64_t sequence = 0;
    bool armed() const { return sequence != 0; }
    auto operator<=>(const Timer&) const = default;
  };

  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Watches fd for the events (level-triggered unless EPOLLET is set). The watcher must outlive the
  // watch; the descriptor stays the caller's.
  [[nodiscard]] Result<Ok> watch(int fd, std::uint32_t events, Watcher& watcher);
  // Changes the events of a watched descriptor.
  void change(int fd, std::uint32_t events);
  // No call reaches the watcher after this, also not for events already fetched. Must come before
  // the descriptor is closed.
  void unwatch(int fd);

  // Calls back once at or after the instant, to within the kernel's timer slack (50 us); on kernels
  // without epoll_pwait2, to within a millisecond.
  Timer call_at(Instant when, std::function<void()> callback);
  Timer call_after(Duration delay, std::function<void()> callback);
  // Forgets the timer; harmless when it has fired or was never armed. Disarms the handle.
  void cancel(Timer& timer);

  // Runs the function in the loop's thread, soon. Any thread.
  void post(std::function<void()> function);

  // Serves until stop(). May be called again afterwards.
  void run();
  // Makes run() return after the events in hand. Any thread.
  void stop();

  // The instant of the events in hand: read once per round, so cheap.
  Instant now() const { return now_; }

 private:
  struct Watch {
    Watcher* watcher = nullptr;
    std::uint64_t generation = 0;  // tells a reused descriptor from the one an event was meant for
  };

  void run_posted();
  void run_timers();
  // Until a descriptor is ready or the first timer is due; returns what epoll_wait returns.
  int wait(std::span<epoll_event> events);
  void wake();

  UniqueFd epoll_;
  UniqueFd wake_;
  std::vector<Watch> watches_;  // by descriptor
  std::uint64_t generation_ = 0;
  std::map<Timer, std::function<void()>> timers_;
  std::uint64_t timer_sequence_ = 0;
  Instant now_{};
  bool waits_nanoseconds_ = true;  // until the kernel says that it has no epoll_pwait2 (< 5.11)

  std::mutex mutex_;  // guards posted_ and stop_
  std::vector<std::function<void()>> posted_;
  bool stop_ = false;
};

}  // namespace septet::os
