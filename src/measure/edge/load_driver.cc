#include "measure/edge/load_driver.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "os/clock.h"

namespace septet::measure {

namespace {

// Pause of a closed loop's connection after a failure, doubled each time up to the longest.
constexpr Duration kFirstBackOff = milliseconds(10);
constexpr Duration kLongestBackOff = milliseconds(500);
constexpr Duration kTimeoutCheck = milliseconds(100);

}  // namespace

LoadDriver::LoadDriver(os::EventLoop& loop, Settings settings, RequestFeed& feed,
                       Observer& observer)
    : loop_(loop),
      settings_(std::move(settings)),
      feed_(feed),
      observer_(observer),
      due_timer_(loop, [this] { send_due(); }) {
  CHECK(!settings_.endpoints.empty());
  timeout_timer_ = loop_.call_after(kTimeoutCheck, [this] { check_timeouts(); });
}

LoadDriver::~LoadDriver() {
  loop_.cancel(timeout_timer_);
  close_all();
}

LoadConnection& LoadDriver::add_connection() {
  const std::size_t turn = connections_.size() % settings_.endpoints.size();
  connections_.push_back(std::make_unique<LoadConnection>(
      loop_, settings_.make_client, settings_.endpoints[turn], turn, feed_, *this));
  return *connections_.back();
}

void LoadDriver::run_closed(std::size_t concurrency) {
  CHECK(concurrency > 0);
  mode_ = Mode::kClosed;
  wanted_ = concurrency;
  waiting_.clear();
  due_timer_.cancel();
  // Requests left over from an open loop count as this load's; their connections stay in it.
  in_load_ = 0;
  free_.clear();
  for (const auto& connection : connections_) {
    connection->in_load = connection->busy() || connection->retry.armed();
    in_load_ += connection->in_load ? 1 : 0;
  }
  for (std::size_t i = 0; in_load_ < wanted_; ++i) {
    LoadConnection& connection = i < connections_.size() ? *connections_[i] : add_connection();
    if (!connection.in_load) {
      connection.in_load = true;
      ++in_load_;
      send(connection, os::now());
    }
  }
}

void LoadDriver::run_open(LoadSchedule schedule) {
  mode_ = Mode::kOpen;
  schedule_ = std::move(schedule);
  schedule_start_ = os::now();
  next_due_ = schedule_start_ + schedule_->next();
  waiting_.clear();
  free_.clear();
  while (settings_.one_turn_each && connections_.size() < settings_.max_connections) {
    add_connection();
  }
  for (const auto& connection : connections_) {
    loop_.cancel(connection->retry);
    connection->in_load = false;
    if (!connection->busy()) {
      free_.push_back(connection.get());
    }
  }
  due_timer_.call_at(next_due_);
}

void LoadDriver::pause() {
  mode_ = Mode::kPaused;
  waiting_.clear();
  due_timer_.cancel();
  for (const auto& connection : connections_) {
    loop_.cancel(connection->retry);
    connection->in_load = false;
  }
  in_load_ = 0;
}

void LoadDriver::when_idle(std::function<void()> callback) {
  if (in_flight_ == 0) {
    callback();
    return;
  }
  when_idle_ = std::move(callback);
}

void LoadDriver::close_all() {
  pause();
  for (const auto& connection : connections_) {
    connection->close();
  }
  free_.clear();
  in_flight_ = 0;
}

void LoadDriver::send(LoadConnection& connection, Instant due) {
  ++in_flight_;
  connection.send(due);
}

// The request in hand has ended, well or badly.
void LoadDriver::retire(LoadConnection& connection) {
  CHECK(in_flight_ > 0);
  --in_flight_;
  if (in_flight_ == 0 && when_idle_) {
    std::exchange(when_idle_, nullptr)();
  }
  if (mode_ == Mode::kOpen) {
    free_.push_back(&connection);
  }
}

void LoadDriver::on_answer(LoadConnection& connection, const AnsweredRequest& answer) {
  observer_.on_answer(answer);
  retire(connection);
  connection.back_off = {};
  switch (mode_) {
    case Mode::kPaused:
      return;
    case Mode::kClosed:
      send_again(connection);
      return;
    case Mode::kOpen:
      use_free();
      return;
  }
}

void LoadDriver::on_failure(LoadConnection& connection, FailureKind kind,
                            const std::string& reason) {
  observer_.on_failure(kind, reason);
  retire(connection);
  if (mode_ == Mode::kClosed) {
    back_off(connection);
  } else if (mode_ == Mode::kOpen && !waiting_.empty()) {
    // Not from here: a connection must not send while it reports a failure.
    due_timer_.call_at(loop_.now());
  }
}

void LoadDriver::send_again(LoadConnection& connection) {
  if (in_load_ > wanted_) {
    connection.in_load = false;
    --in_load_;
    return;
  }
  if (!connection.in_load) {
    connection.in_load = true;
    ++in_load_;
  }
  send(connection, os::now());
}

void LoadDriver::back_off(LoadConnection& connection) {
  // A server that refuses at once would otherwise be asked a hundred thousand times a second.
  connection.back_off = connection.back_off == Duration::zero()
                            ? kFirstBackOff
                            : std::min(2 * connection.back_off, kLongestBackOff);
  connection.retry = loop_.call_after(connection.back_off, [this, &connection] {
    connection.retry = {};
    send_again(connection);
  });
}

// Sends a request that waits on a free connection, if there are both.
void LoadDriver::use_free() {
  if (waiting_.empty() || free_.empty()) {
    return;
  }
  // The one used last is the likeliest to be still open; sequences must all have their turn.
  LoadConnection* connection = nullptr;
  if (settings_.one_turn_each) {
    connection = free_.front();
    free_.pop_front();
  } else {
    connection = free_.back();
    free_.pop_back();
  }
  const Instant due = waiting_.front();
  waiting_.pop_front();
  observer_.on_sent_late(os::now() - due);
  send(*connection, due);
}

void LoadDriver::send_due() {
  if (mode_ != Mode::kOpen) {
    return;
  }
  for (Instant now = os::now(); next_due_ <= now; now = os::now()) {
    waiting_.push_back(next_due_);
    next_due_ = schedule_start_ + schedule_->next();
  }
  while (!waiting_.empty()) {
    if (free_.empty()) {
      if (connections_.size() >= settings_.max_connections) {
        break;
      }
      free_.push_back(&add_connection());
    }
    use_free();
  }
  due_timer_.call_at(next_due_);
}

void LoadDriver::check_timeouts() {
  const Instant now = os::now();
  for (const auto& connection : connections_) {
    if (connection->busy() && now - connection->sent() > settings_.request_timeout) {
      connection->time_out();
    }
  }
  timeout_timer_ = loop_.call_after(kTimeoutCheck, [this] { check_timeouts(); });
}

}  // namespace septet::measure
