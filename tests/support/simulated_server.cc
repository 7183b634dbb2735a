#include "support/simulated_server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <mutex>
#include <queue>
#include <set>
#include <vector>

#include "inference/http1.h"
#include "measure/edge/precise_timer.h"
#include "os/clock.h"
#include "os/event_loop.h"

namespace septet::test {

namespace {

constexpr std::string_view kModel = "simulated";

}  // namespace

class SimulatedServer::Impl final : public os::EventLoop::Watcher {
 public:
  explicit Impl(ServerBehaviour behaviour);
  ~Impl() override;

  void on_ready(std::uint32_t events) override;

  class Connection;

  void received(Connection& connection, std::string_view path, std::string_view whole);
  void forget(Connection& connection);
  void run() { loop_.run(); }
  void stop() { loop_.stop(); }

  ServerBehaviour behaviour_;
  os::EventLoop loop_;
  os::UniqueFd listener_;
  os::Endpoint endpoint_;
  std::atomic<std::uint64_t> requests_ = 0;
  std::atomic<std::uint64_t> most_at_once_ = 0;
  std::mutex mutex_;  // guards the two below
  std::string last_request_;
  std::string last_registration_;

 private:
  struct Job {
    std::uint64_t connection = 0;
    Duration service{};
    Reply reply = Reply::kAnswer;
  };
  struct Completion {
    Instant when;
    std::uint64_t order = 0;
    Job job;
    bool operator>(const Completion& other) const {
      return std::tie(when, order) > std::tie(other.when, other.order);
    }
  };

  void infer(Connection& connection, std::string_view whole);
  void begin_service(Instant start);
  Instant end_of(Instant start, Duration service) const;
  void complete_due();
  void answer(const Job& job);
  std::string describe(std::string_view wanted) const;

  Prng prng_;
  Instant start_;
  measure::PreciseTimer timer_;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::uint64_t next_connection_ = 0;
  std::vector<std::uint64_t> dead_;
  std::deque<Job> queue_;
  std::priority_queue<Completion, std::vector<Completion>, std::greater<>> running_;
  std::uint64_t order_ = 0;
  std::uint64_t served_ = 0;
};

class SimulatedServer::Impl::Connection final : public os::EventLoop::Watcher {
 public:
  Connection(Impl& server, os::UniqueFd fd, std::uint64_t id)
      : id_(id), server_(server), fd_(std::move(fd)) {
    CHECK(server_.loop_.watch(fd_.get(), EPOLLIN, *this).ok());
  }
  ~Connection() override { server_.loop_.unwatch(fd_.get()); }

  void on_ready(std::uint32_t /*events*/) override {
    char bytes[64 * 1024];
    const ssize_t got = ::recv(fd_.get(), bytes, sizeof bytes, 0);
    if (got <= 0) {
      server_.forget(*this);
      return;
    }
    buffer_.append(bytes, static_cast<std::size_t>(got));
    const inference::HeadResult result = parser_.parse_request(buffer_, head_);
    if (result.state == inference::HeadResult::State::kRefused) {
      server_.forget(*this);
    } else if (result.state == inference::HeadResult::State::kComplete &&
               buffer_.size() >= result.head_bytes + head_.content_length) {
      const std::string whole = std::exchange(buffer_, {});
      const std::size_t path = whole.find(' ') + 1;
      server_.received(*this, std::string_view(whole).substr(path, whole.find(' ', path) - path),
                       whole);
    } else {
      parser_ = inference::HttpHeadParser();
    }
  }

  void write(std::string_view bytes) {
    // Answers are small: they always fit into the socket's buffer.
    [[maybe_unused]] const ssize_t sent =
        ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void reset() {
    const linger hard{1, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  }

  const std::uint64_t id_;

 private:
  Impl& server_;
  os::UniqueFd fd_;
  std::string buffer_;
  inference::HttpHeadParser parser_;
  inference::HttpHead head_;
};

SimulatedServer::Impl::Impl(ServerBehaviour behaviour)
    : behaviour_(std::move(behaviour)),
      prng_(behaviour_.seed),
      start_(os::now()),
      timer_(loop_, [this] { complete_due(); }) {
  Result<os::UniqueFd> listener = os::listen_on(os::Endpoint{"127.0.0.1", 0, ""});
  CHECK(listener.ok());
  listener_ = std::move(*listener);
  endpoint_ = os::local_endpoint(listener_.get());
  CHECK(loop_.watch(listener_.get(), EPOLLIN, *this).ok());
}

SimulatedServer::Impl::~Impl() {
  connections_.clear();
  loop_.unwatch(listener_.get());
}

void SimulatedServer::Impl::on_ready(std::uint32_t /*events*/) {
  for (os::UniqueFd fd = os::accept_from(listener_.get()); fd.valid();
       fd = os::accept_from(listener_.get())) {
    const std::uint64_t id = ++next_connection_;
    connections_.emplace(id, std::make_unique<Connection>(*this, std::move(fd), id));
  }
}

void SimulatedServer::Impl::forget(Connection& connection) {
  // Destroyed from the loop, not from within the connection's own call.
  const std::uint64_t id = connection.id_;
  loop_.post([this, id] { connections_.erase(id); });
}

std::string SimulatedServer::Impl::describe(std::string_view wanted) const {
  const std::string model = fmt::format("/v2/models/{}", kModel);
  std::string path(wanted);
  if (constexpr std::string_view kVersion = "/versions/1"; path.find(kVersion) == model.size()) {
    path.erase(model.size(), kVersion.size());
  }
  if (path == "/v2") {
    return fmt::format(
        R"({{"name":"simulated","version":"1","extensions":["binary_tensor_data"{}]}})",
        behaviour_.has_statistics ? R"(,"statistics")" : "");
  }
  if (path == "/metrics") {
    return behaviour_.metrics_page;
  }
  if (!behaviour_.model_exists) {
    return {};
  }
  const std::string wire_shape = behaviour_.max_batch_size > 0
                                     ? "[-1," + behaviour_.input_shape.substr(1)
                                     : behaviour_.input_shape;
  if (path == model) {
    return fmt::format(
        R"({{"name":"{}","versions":["1"],"platform":"none","inputs":[{{"name":"IN","datatype":"INT32","shape":{}}}],"outputs":[{{"name":"OUT","datatype":"INT32","shape":{}}}]}})",
        kModel, wire_shape, wire_shape);
  }
  if (path == model + "/config") {
    return fmt::format(
        R"({{"name":"{}","max_batch_size":{},"input":[{{"name":"IN","data_type":"TYPE_INT32","dims":{}}}],"output":[{{"name":"OUT","data_type":"TYPE_INT32","dims":{}}}]{}}})",
        kModel, behaviour_.max_batch_size, behaviour_.input_shape, behaviour_.input_shape,
        behaviour_.is_sequence_model ? R"(,"sequence_batching":{})" : "");
  }
  if (path == model + "/stats") {
    const auto duration = [&](std::uint64_t us) {
      return fmt::format(R"({{"count":{},"ns":{}}})", served_, served_ * us * 1000);
    };
    return fmt::format(
        R"({{"model_stats":[{{"name":"{}","version":"1","inference_count":{},"execution_count":{},"inference_stats":{{"success":{},"fail":{{"count":0,"ns":0}},"queue":{},"compute_input":{},"compute_infer":{},"compute_output":{}}}}}]}})",
        kModel, served_, served_, duration(100), duration(1), duration(2), duration(90),
        duration(3));
  }
  return {};
}

void SimulatedServer::Impl::received(Connection& connection, std::string_view path,
                                     std::string_view whole) {
  if (path.ends_with("/infer")) {
    infer(connection, whole);
    return;
  }
  if (path.starts_with("/v2/systemsharedmemory/") || path == "/v2/trace/setting") {
    const std::lock_guard lock(mutex_);
    last_registration_ = whole;
    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    return;
  }
  const std::string body = describe(path);
  constexpr std::string_view kUnknown = R"({"error":"unknown model"})";
  const std::string_view text = body.empty() ? kUnknown : std::string_view(body);
  connection.write(
      fmt::format("HTTP/1.1 {}\r\nContent-Type: application/json\r\nContent-Length: {}"
                  "\r\n\r\n{}",
                  body.empty() ? "404 Not Found" : "200 OK", text.size(), text));
}

void SimulatedServer::Impl::infer(Connection& connection, std::string_view whole) {
  const std::uint64_t index = requests_.fetch_add(1);
  {
    const std::lock_guard lock(mutex_);
    last_request_ = whole;
  }
  queue_.push_back(
      {connection.id_, behaviour_.service_time(index, prng_), behaviour_.reply(index)});
  most_at_once_ = std::max<std::uint64_t>(most_at_once_, queue_.size() + running_.size());
  begin_service(os::now());
}

// Hands waiting jobs to free replicas at the instant.
void SimulatedServer::Impl::begin_service(Instant start) {
  while (!queue_.empty() && running_.size() < static_cast<std::size_t>(behaviour_.replicas)) {
    const Job job = queue_.front();
    queue_.pop_front();
    const Instant end = end_of(start, job.service);
    if (end <= start) {
      answer(job);  // takes no time: answered in place, so that a fast server can be simulated
    } else {
      running_.push({end, ++order_, job});
    }
  }
  if (!running_.empty()) {
    timer_.call_at(running_.top().when - behaviour_.spin);
  }
}

// When a service that starts at the instant is over; nothing ends while the server is stalled.
Instant SimulatedServer::Impl::end_of(Instant start, Duration service) const {
  const Instant end = start + service;
  if (behaviour_.stall_period == Duration::zero()) {
    return end;
  }
  const Duration into_period = (end - start_) % behaviour_.stall_period;
  const Duration stall_start = behaviour_.stall_period - behaviour_.stall_length;
  return into_period >= stall_start ? end + (behaviour_.stall_period - into_period) : end;
}

void SimulatedServer::Impl::complete_due() {
  while (!running_.empty() && running_.top().when <= os::now() + behaviour_.spin) {
    while (os::now() < running_.top().when) {
    }
    const Completion done = running_.top();
    running_.pop();
    answer(done.job);
    // The next service begins when this one ended, not when the thread woke up to see it.
    begin_service(done.when);
  }
  if (!running_.empty()) {
    timer_.call_at(running_.top().when - behaviour_.spin);
  }
}

void SimulatedServer::Impl::answer(const Job& job) {
  const auto found = connections_.find(job.connection);
  if (found == connections_.end()) {
    return;  // the client has gone
  }
  Connection& connection = *found->second;
  const std::string json =
      R"({"model_name":"simulated","model_version":"1","outputs":[{"name":"OUT","datatype":"INT32","shape":[1],"data":[7]}]})";
  const auto head = [&](std::string_view status, std::string_view field, std::size_t length) {
    return fmt::format("HTTP/1.1 {}\r\n{}Content-Length: {}\r\n\r\n", status, field, length);
  };
  constexpr std::string_view kRefusal = R"({"error":"simulated refusal"})";
  switch (job.reply) {
    case Reply::kAnswer:
      ++served_;
      return connection.write(head("200 OK", "", json.size()) + json);
    case Reply::kRefuse:
      return connection.write(head("503 Service Unavailable", "", kRefusal.size()) +
                              std::string(kRefusal));
    case Reply::kReject:
      return connection.write(head("400 Bad Request", "", kRefusal.size()) + std::string(kRefusal));
    case Reply::kFail:
      return connection.write(head("500 Internal Server Error", "", 4) + "oops");
    case Reply::kReset:
      connection.reset();
      return forget(connection);
    case Reply::kHalf:
      connection.write("HTTP/1.1 200 OK\r\nContent-Le");
      return forget(connection);
    case Reply::kShortBody:
      connection.write(head("200 OK", "", json.size()) + json.substr(0, 10));
      return forget(connection);
    case Reply::kGarbage:
      return connection.write("\x16\x03\x01 hello\r\n\r\n");
    case Reply::kSilence:
      return;
    case Reply::kChunked:
      ++served_;
      return connection.write(fmt::format(
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
          json.size(), json));
    case Reply::kLastOne:
      ++served_;
      connection.write(head("200 OK", "Connection: close\r\n", json.size()) + json);
      return forget(connection);
  }
}

SimulatedServer::SimulatedServer(ServerBehaviour behaviour)
    : impl_(std::make_unique<Impl>(std::move(behaviour))), thread_([this] { impl_->run(); }) {}

SimulatedServer::~SimulatedServer() {
  impl_->stop();
  thread_.join();
}

os::Endpoint SimulatedServer::endpoint() const { return impl_->endpoint_; }
std::uint64_t SimulatedServer::requests() const { return impl_->requests_; }
std::uint64_t SimulatedServer::most_at_once() const { return impl_->most_at_once_; }
std::string SimulatedServer::last_request() const {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->last_request_;
}

std::string SimulatedServer::last_registration() const {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->last_registration_;
}

}  // namespace septet::test
