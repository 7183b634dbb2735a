// PreciseTimer: calls back at an instant, to within tens of microseconds.
//
// On kernels without epoll_pwait2 the event loop rounds up to a millisecond, too coarse for an open
// loop's send times. One per loop and thread; must be destroyed before its loop.
#pragma once

#include <functional>

#include "base/time.h"
#include "os/event_loop.h"

namespace septet::measure {

class PreciseTimer final : public os::EventLoop::Watcher {
 public:
  PreciseTimer(os::EventLoop& loop, std::function<void()> callback);
  ~PreciseTimer() override;
  PreciseTimer(const PreciseTimer&) = delete;
  PreciseTimer& operator=(const PreciseTimer&) = delete;

  // Calls back once at the instant, or at once if it has passed; replaces an earlier one.
  void call_at(Instant when);
  void cancel();

  void on_ready(std::uint32_t events) override;

 private:
  os::EventLoop& loop_;
  std::function<void()> callback_;
  os::UniqueFd fd_;
};

}  // namespace septet::measure
