#include "support/closed_loop.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "inference/http1.h"
#include "os/clock.h"
#include "os/event_loop.h"

namespace septet::test {

namespace {

constexpr std::size_t kJsonBytes = 180;  // about what clients write

class Loop {
 public:
  explicit Loop(const ClosedLoop& load) : load_(load), scratch_(1 << 20U, '\0') {
    result_.latencies.reserve(load.requests);
  }

  ClosedLoopResult run() {
    const Instant start = os::now();
    for (std::size_t i = 0; i < load_.connections; ++i) {
      clients_.push_back(std::make_unique<Client>(*this));
      open(*clients_.back());
    }
    loop_.call_after(load_.give_up, [this] { loop_.stop(); });
    loop_.run();
    result_.elapsed = os::now() - start;
    return std::move(result_);
  }

 private:
  struct Client final : os::EventLoop::Watcher {
    explicit Client(Loop& owner) : loop(owner) {}
    ~Client() override { loop.loop_.unwatch(fd.get()); }
    void on_ready(std::uint32_t events) override { loop.serve(*this, events); }
    Loop& loop;
    os::UniqueFd fd;
    std::size_t sent = 0;
    std::string in;
    inference::HttpHeadParser parser;
    inference::HttpHead head;
    bool in_body = false;
    unsigned status = 0;
    std::uint64_t body_left = 0;
    Instant began{};
    bool writable = false;
  };

  void open(Client& client) {
    loop_.unwatch(client.fd.get());
    Result<os::UniqueFd> fd = os::connect_to(load_.target, 5000);
    CHECK(fd.ok());
    client.fd = std::move(*fd);
    CHECK(loop_.watch(client.fd.get(), EPOLLIN, client).ok());
    client.writable = false;
    begin(client);
  }

  void begin(Client& client) {
    client.in_body = false;
    client.in.clear();
    client.sent = 0;
    if (started_ == load_.requests) {
      return;
    }
    ++started_;
    client.began = os::now();
    write(client);
  }

  void write(Client& client) {
    while (client.sent < load_.request.size()) {
      const ssize_t sent = send(client.fd.get(), load_.request.data() + client.sent,
                                load_.request.size() - client.sent, MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) {
        return;  // the end of the connection shows when it is read
      }
      if (sent < 0) {
        want_writable(client, true);
        return;
      }
      client.sent += static_cast<std::size_t>(sent);
    }
    want_writable(client, false);
  }

  void want_writable(Client& client, bool wanted) {
    if (client.writable != wanted) {
      client.writable = wanted;
      loop_.change(client.fd.get(), wanted ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
  }

  void serve(Client& client, std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) {
      write(client);
    }
    if ((events & ~std::uint32_t{EPOLLOUT}) == 0) {
      return;
    }
    const ssize_t got = recv(client.fd.get(), scratch_.data(), scratch_.size(), 0);
    if (got < 0 && errno == EAGAIN) {
      return;
    }
    if (got <= 0) {
      ++result_.cut;
      ended(client, false);
      return;
    }
    std::string_view bytes(scratch_.data(), static_cast<std::size_t>(got));
    if (!client.in_body) {
      client.in += bytes;
      const auto parsed = client.parser.parse_response(client.in, client.head);
      CHECK(parsed.state != inference::HeadResult::State::kRefused);
      if (parsed.state == inference::HeadResult::State::kIncomplete) {
        return;
      }
      client.in_body = true;
      client.status = client.head.status;
      client.body_left = client.head.content_length;
      bytes = std::string_view(client.in).substr(parsed.head_bytes);
    }
    client.body_left -= std::min<std::uint64_t>(client.body_left, bytes.size());
    if (client.body_left == 0) {
      ++result_.answered;
      ++result_.statuses[client.status];
      ended(client, client.status == 200);
    }
  }

  void ended(Client& client, bool good) {
    if (good) {
      result_.latencies.push_back(os::now() - client.began);
    } else {
      ++result_.failed;
    }
    ++ended_;
    if (load_.on_ended) {
      load_.on_ended(ended_);
    }
    if (ended_ == load_.requests) {
      loop_.stop();
      return;
    }
    // After an error the proxy may close; a new connection tells the same.
    good ? begin(client) : open(client);
  }

  const ClosedLoop& load_;
  std::string scratch_;
  os::EventLoop loop_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::uint64_t started_ = 0;
  std::uint64_t ended_ = 0;
  ClosedLoopResult result_;
};

}  // namespace

Duration ClosedLoopResult::percentile(double q) const {
  const auto drop = static_cast<std::ptrdiff_t>(latencies.size() / 10);
  std::vector<Duration> sorted(latencies.begin() + drop, latencies.end());
  if (sorted.empty()) {
    return Duration::zero();
  }
  std::sort(sorted.begin(), sorted.end());
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(q * static_cast<double>(sorted.size())))];
}

ClosedLoopResult run_closed_loop(const ClosedLoop& load) { return Loop(load).run(); }

std::string infer_request(std::string_view model, std::size_t body_bytes) {
  const std::size_t tensor_bytes = body_bytes - std::min(body_bytes, kJsonBytes);
  std::string body = fmt::format(R"({{"inputs":[{{"name":"IN","datatype":"UINT8","shape":[{0}],)"
                                 R"("parameters":{{"binary_data_size":{0}}}}}]}})",
                                 tensor_bytes);
  body.resize(kJsonBytes, ' ');
  body.resize(body_bytes, 'x');
  return fmt::format(
             "POST /v2/models/{}/infer HTTP/1.1\r\nHost: localhost\r\n"
             "User-Agent: libcurl-agent/1.0\r\nAccept: */*\r\n"
             "Inference-Header-Content-Length: {}\r\n"
             "Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
             model, kJsonBytes, body_bytes) +
         body;
}

}  // namespace septet::test
