#include "measure/edge/precise_timer.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace septet::measure {

namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

}  // namespace

PreciseTimer::PreciseTimer(os::EventLoop& loop, std::function<void()> callback)
    : loop_(loop),
      callback_(std::move(callback)),
      fd_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  CHECK(fd_.valid());
  CHECK(loop_.watch(fd_.get(), EPOLLIN, *this).ok());
}

PreciseTimer::~PreciseTimer() { loop_.unwatch(fd_.get()); }

void PreciseTimer::call_at(Instant when) {
  // Zero would disarm; an instant that has passed fires at once.
  const std::int64_t ns = std::max<std::int64_t>(1, when.time_since_epoch().count());
  itimerspec spec{};
  spec.it_value.tv_sec = ns / kNanosecondsPerSecond;
  spec.it_value.tv_nsec = ns % kNanosecondsPerSecond;
  CHECK(timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr) == 0);
}

void PreciseTimer::cancel() {
  const itimerspec none{};
  CHECK(timerfd_settime(fd_.get(), 0, &none, nullptr) == 0);
}

void PreciseTimer::on_ready(std::uint32_t /*events*/) {
  std::uint64_t expirations = 0;
  if (::read(fd_.get(), &expirations, sizeof expirations) == sizeof expirations) {
    callback_();
  }
}

}  // namespace septet::measure
