#include "os/event_loop.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <thread>

#include "os/clock.h"

namespace septet::os {
namespace {

class CountingWatcher : public EventLoop::Watcher {
 public:
  explicit CountingWatcher(std::function<void()> action) : action_(std::move(action)) {}
  void on_ready(std::uint32_t /*events*/) override {
    ++calls;
    action_();
  }
  int calls = 0;

 private:
  std::function<void()> action_;
};

struct SocketPair {
  SocketPair() {
    std::array<int, 2> fds{};
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0);
    a.reset(fds[0]);
    b.reset(fds[1]);
  }
  UniqueFd a;
  UniqueFd b;
};

TEST(EventLoop, CallsTheWatcherOfAReadyDescriptor) {
  EventLoop loop;
  SocketPair pair;
  CountingWatcher watcher([&] { loop.stop(); });
  ASSERT_TRUE(loop.watch(pair.a.get(), EPOLLIN, watcher).ok());
  ASSERT_EQ(::write(pair.b.get(), "x", 1), 1);

  loop.run();

  EXPECT_EQ(watcher.calls, 1);
}

TEST(EventLoop, AWatcherRemovedInTheSameRoundIsNotCalled) {
  EventLoop loop;
  SocketPair one;
  SocketPair two;
  CountingWatcher* second = nullptr;
  CountingWatcher first([&] {
    loop.unwatch(one.a.get());
    loop.unwatch(two.a.get());
    loop.call_after(Duration::zero(), [&] { loop.stop(); });
  });
  CountingWatcher other([&] {
    loop.unwatch(one.a.get());
    loop.unwatch(two.a.get());
    loop.call_after(Duration::zero(), [&] { loop.stop(); });
  });
  second = &other;
  ASSERT_TRUE(loop.watch(one.a.get(), EPOLLIN, first).ok());
  ASSERT_TRUE(loop.watch(two.a.get(), EPOLLIN, *second).ok());
  ASSERT_EQ(::write(one.b.get(), "x", 1), 1);
  ASSERT_EQ(::write(two.b.get(), "x", 1), 1);

  loop.run();

  EXPECT_EQ(first.calls + other.calls, 1);
}

TEST(EventLoop, TimersFireInOrderAndCancelledOnesDoNot) {
  EventLoop loop;
  std::string order;
  loop.call_after(milliseconds(2), [&] { order += "b"; });
  loop.call_after(milliseconds(1), [&] { order += "a"; });
  EventLoop::Timer cancelled = loop.call_after(milliseconds(1), [&] { order += "x"; });
  loop.cancel(cancelled);
  loop.call_after(milliseconds(3), [&] { loop.stop(); });

  loop.run();

  EXPECT_EQ(order, "ab");
  EXPECT_FALSE(cancelled.armed());
}

TEST(EventLoop, ATimerIsNotHeldBackToTheNextMillisecond) {
  const timespec none{};
  epoll_event unused{};
  const UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (epoll_pwait2(epoll.get(), &unused, 1, &none, nullptr) != 0) {
    GTEST_SKIP() << "this kernel waits in whole milliseconds only";
  }
  EventLoop loop;
  Duration least = std::chrono::hours(1);
  int left = 50;
  std::function<void()> arm = [&] {
    const Instant when = now() + microseconds(100);
    loop.call_at(when, [&, when] {
      least = std::min(least, now() - when);
      --left == 0 ? loop.stop() : arm();
    });
  };
  arm();

  loop.run();

  EXPECT_LT(least, microseconds(500));  // of fifty: a busy machine delays some, not all
}

TEST(EventLoop, PostRunsInTheLoopsThread) {
  EventLoop loop;
  std::thread::id ran_in;
  std::thread poster([&] {
    loop.post([&] {
      ran_in = std::this_thread::get_id();
      loop.stop();
    });
  });

  loop.run();
  poster.join();

  EXPECT_EQ(ran_in, std::this_thread::get_id());
}

}  // namespace
}  // namespace septet::os
