// LoadDriver: keeps the wanted load on the target, whatever comes back.
//
// Owned by the LoadGenerator, lives on its loop. A closed loop keeps so many requests in flight; an
// open loop sends each request when its schedule says, on a free connection or a new one, and if
// all are taken the request waits and is measured from the instant it was due.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "measure/edge/load_connection.h"
#include "measure/edge/precise_timer.h"
#include "measure/load_schedule.h"

namespace septet::measure {

class LoadDriver final : public LoadConnection::Owner {
 public:
  // Hears what happens to the load.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void on_answer(const AnsweredRequest& answer) = 0;
    virtual void on_failure(FailureKind kind, const std::string& reason) = 0;
    virtual void on_sent_late(Duration lag) = 0;
  };

  struct Settings {
    ClientFactory make_client;
    std::vector<os::Endpoint> endpoints;  // connections are dealt to them in turn
    bool one_turn_each = false;           // open loop: connections take turns (sequences)
    std::size_t max_connections = 1024;   // open loop
    Duration request_timeout = seconds(60);
  };

  LoadDriver(os::EventLoop& loop, Settings settings, RequestFeed& feed, Observer& observer);
  ~LoadDriver() override;

  // Keeps this many requests in flight from now on.
  void run_closed(std::size_t concurrency);
  // Sends by the schedule, which begins now.
  void run_open(LoadSchedule schedule);
  // Sends nothing more; what is in flight goes on.
  void pause();
  // Calls back once nothing is in flight (perhaps at once).
  void when_idle(std::function<void()> callback);
  // Closes every connection; what is in flight is not reported.
  void close_all();

  std::size_t in_flight() const { return in_flight_; }

 private:
  enum class Mode { kPaused, kClosed, kOpen };

  void on_answer(LoadConnection& connection, const AnsweredRequest& answer) override;
  void on_failure(LoadConnection& connection, FailureKind kind, const std::string& reason) override;

  LoadConnection& add_connection();
  void send(LoadConnection& connection, Instant due);
  void retire(LoadConnection& connection);
  void send_again(LoadConnection& connection);
  void back_off(LoadConnection& connection);
  void send_due();
  void use_free();
  void check_timeouts();

  os::EventLoop& loop_;
  Settings settings_;
  RequestFeed& feed_;
  Observer& observer_;
  PreciseTimer due_timer_;
  os::EventLoop::Timer timeout_timer_;
  std::vector<std::unique_ptr<LoadConnection>> connections_;
  Mode mode_ = Mode::kPaused;
  std::size_t in_flight_ = 0;
  std::function<void()> when_idle_;

  std::size_t wanted_ = 0;   // closed loop: requests in flight
  std::size_t in_load_ = 0;  // closed loop: connections that are in flight or pausing

  std::optional<LoadSchedule> schedule_;
  Instant schedule_start_{};
  Instant next_due_{};
  std::deque<Instant> waiting_;       // due, and no connection was free
  std::deque<LoadConnection*> free_;  // latest used last
};

}  // namespace septet::measure
