#include "agent/edge/control_server.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace septet::agent {

namespace {

constexpr mode_t kSocketMode = 0666;  // who may do what is decided by the peer's user, not by files

std::string error_json(std::string_view kind, std::string_view message) {
  // Texts here are our own or quoted below: no character that JSON would escape.
  std::string clean(message);
  for (char& c : clean) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ') {
      c = '\'';
    }
  }
  return fmt::format(R"({{"error":{{"kind":"{}","message":"{}"}}}})", kind, clean);
}

std::map<std::string, std::string> parse_query(std::string_view text) {
  std::map<std::string, std::string> query;
  for (const std::string_view pair : split(text, '&')) {
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos) {
      query.emplace(pair.substr(0, equals), pair.substr(equals + 1));
    }
  }
  return query;
}

}  // namespace

std::vector<std::string_view> ControlRequest::segments() const {
  std::vector<std::string_view> pieces;
  for (const std::string_view piece : split(path, '/')) {
    if (!piece.empty()) {
      pieces.push_back(piece);
    }
  }
  return pieces;
}

// One client. Deleted only from the loop (never under its own feet): remove() posts.
class ControlServer::Connection : public ControlExchange, private os::EventLoop::Watcher {
 public:
  Connection(ControlServer& server, os::UniqueFd fd, const Peer& peer)
      : server_(server), fd_(std::move(fd)) {
    request_.peer = peer;
  }
  ~Connection() override {
    server_.loop_.cancel(timeout_);
    server_.loop_.unwatch(fd_.get());
  }

  Result<Ok> start() { return server_.loop_.watch(fd_.get(), EPOLLIN | EPOLLRDHUP, *this); }
  int fd() const { return fd_.get(); }
  uid_t user() const { return request_.peer.uid; }

  const ControlRequest& request() const override { return request_; }

  void respond(unsigned status, const std::string& json) override {
    if (state_ != State::kAnswering) {
      return;
    }
    begin_response(status);
    inference::append_field(out_, "Content-Type", "application/json");
    inference::append_field(out_, "Content-Length", std::uint64_t{json.size()});
    out_ += "\r\n" + json;
    finish_answer();
  }

  void open_stream() override {
    if (state_ != State::kAnswering) {
      return;
    }
    state_ = State::kStreaming;
    begin_response(200);
    inference::append_field(out_, "Content-Type", "application/x-ndjson");
    inference::append_field(out_, "Transfer-Encoding", "chunked");
    out_ += "\r\n";
    flush();
  }

  void send_line(const std::string& json) override {
    if (state_ == State::kStreaming) {
      out_ += fmt::format("{:x}\r\n{}\n\r\n", json.size() + 1, json);
      flush();
    }
  }

  void end_stream() override {
    if (state_ == State::kStreaming) {
      out_ += "0\r\n\r\n";
      finish_answer();
    }
  }

  void on_close(std::function<void()> callback) override { closed_ = std::move(callback); }

 private:
  enum class State { kReading, kAnswering, kStreaming, kGone };

  void begin_response(unsigned status) {
    inference::append_status_line(out_, status);
    if (!keep_alive_) {
      inference::append_field(out_, "Connection", "close");
    }
  }

  void finish_answer() {
    closed_ = nullptr;
    state_ = State::kReading;
    parser_ = inference::HttpHeadParser();
    request_.body.clear();
    flush();
    if (state_ == State::kReading && !in_.empty()) {
      // A pipelined request; from the loop, so that answers do not nest.
      server_.loop_.post([&server = server_, fd = fd_.get(), self = this] {
        const auto found = server.connections_.find(fd);
        if (found != server.connections_.end() && found->second.get() == self) {
          self->process();
        }
      });
    }
  }

  void on_ready(std::uint32_t events) override {
    if ((events & EPOLLIN) != 0) {
      read_input();
    }
    if (state_ != State::kGone && (events & EPOLLOUT) != 0) {
      flush();
    }
    if (state_ != State::kGone && (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) {
      close();
    }
  }

  void read_input() {
    std::array<char, 16384> buffer{};
    for (;;) {
      const ssize_t got = recv(fd_.get(), buffer.data(), buffer.size(), 0);
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got < 0 && errno == EAGAIN) {
        break;
      }
      if (got <= 0) {
        return close();
      }
      in_.append(buffer.data(), static_cast<std::size_t>(got));
      const std::size_t most =
          server_.options_.max_body_bytes + inference::HttpLimits{}.max_head_bytes;
      if (in_.size() > 2 * most) {
        return close();  // pipelining without end
      }
    }
    process();
  }

  void process() {
    if (state_ != State::kReading || in_.empty()) {
      return;
    }
    if (!timeout_.armed()) {
      timeout_ = server_.loop_.call_after(server_.options_.request_timeout, [this] {
        timeout_ = {};
        if (state_ == State::kReading) {
          close();
        }
      });
    }
    inference::HttpHead head;
    const inference::HeadResult result = parser_.parse_request(in_, head);
    switch (result.state) {
      case inference::HeadResult::State::kIncomplete:
        return;
      case inference::HeadResult::State::kRefused:
        return refuse(result.status, result.reason);
      case inference::HeadResult::State::kComplete:
        break;
    }
    if (head.framing == inference::BodyFraming::kChunked) {
      return refuse(501, "a chunked request body is not understood here");
    }
    if (head.content_length > server_.options_.max_body_bytes) {
      return refuse(413, "the request body is too large");
    }
    const std::size_t length = static_cast<std::size_t>(head.content_length);
    if (in_.size() < result.head_bytes + length) {
      parser_ = inference::HttpHeadParser();
      return;
    }
    take_request(head, result.head_bytes, length);
  }

  void take_request(const inference::HttpHead& head, std::size_t head_bytes, std::size_t length) {
    request_.method = head.method;
    const std::size_t question = head.target.find('?');
    request_.path = head.target.substr(0, question);
    request_.query = question == std::string_view::npos
                         ? std::map<std::string, std::string>()
                         : parse_query(head.target.substr(question + 1));
    keep_alive_ = head.keep_alive;
    request_.body = in_.substr(head_bytes, length);
    in_.erase(0, head_bytes + length);
    server_.loop_.cancel(timeout_);
    state_ = State::kAnswering;
    server_.handler_(*this);
  }

  void refuse(unsigned status, const std::string& reason) {
    state_ = State::kAnswering;
    keep_alive_ = false;
    in_.clear();
    respond(status, error_json("usage", reason));
  }

  void flush() {
    while (!out_.empty()) {
      const ssize_t sent = send(fd_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) {
        continue;
      }
      if (sent < 0 && errno == EAGAIN) {
        break;
      }
      if (sent < 0) {
        return close();
      }
      out_.erase(0, static_cast<std::size_t>(sent));
    }
    if (out_.size() > server_.options_.max_unsent_bytes) {
      return close();
    }
    if (out_.empty() && state_ == State::kReading && !keep_alive_) {
      return close();
    }
    server_.loop_.change(fd_.get(),
                         out_.empty() ? EPOLLIN | EPOLLRDHUP : EPOLLIN | EPOLLRDHUP | EPOLLOUT);
  }

  void close() {
    if (state_ == State::kGone) {
      return;
    }
    state_ = State::kGone;
    server_.loop_.unwatch(fd_.get());
    if (const std::function<void()> callback = std::exchange(closed_, nullptr)) {
      callback();
    }
    server_.remove(*this);
  }

  ControlServer& server_;
  os::UniqueFd fd_;
  State state_ = State::kReading;
  bool keep_alive_ = true;
  ControlRequest request_;
  std::string in_;
  std::string out_;
  inference::HttpHeadParser parser_;
  os::EventLoop::Timer timeout_;
  std::function<void()> closed_;
};

ControlServer::ControlServer(os::EventLoop& loop, std::string path, ControlHandler handler,
                             const ControlServerOptions& options)
    : loop_(loop), path_(std::move(path)), handler_(std::move(handler)), options_(options) {}

ControlServer::~ControlServer() {
  connections_.clear();
  if (listener_.valid()) {
    loop_.unwatch(listener_.get());
    unlink(path_.c_str());
  }
}

Result<std::unique_ptr<ControlServer>> ControlServer::listen(os::EventLoop& loop,
                                                             const std::string& path,
                                                             ControlHandler handler,
                                                             const ControlServerOptions& options) {
  os::Endpoint endpoint;
  endpoint.unix_path = path;
  Result<os::UniqueFd> listener = os::listen_on(endpoint);
  SEPTET_TRY(listener);
  if (chmod(path.c_str(), kSocketMode) != 0) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("cannot open {} for every user: {}", path, std::strerror(errno)));
  }
  std::unique_ptr<ControlServer> server(new ControlServer(loop, path, std::move(handler), options));
  server->listener_ = *std::move(listener);
  SEPTET_TRY(loop.watch(server->listener_.get(), EPOLLIN, *server));
  return server;
}

void ControlServer::on_ready(std::uint32_t /*events*/) { accept_all(); }

void ControlServer::accept_all() {
  for (;;) {
    os::UniqueFd fd = os::accept_from(listener_.get());
    if (!fd.valid()) {
      return;
    }
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
      continue;
    }
    std::size_t& of_user = per_user_[credentials.uid];
    if (connections_.size() >= options_.max_connections ||
        of_user >= options_.max_connections_per_user) {
      continue;  // closed: the client sees that nobody answers
    }
    const int number = fd.get();
    auto connection = std::make_unique<Connection>(
        *this, std::move(fd), Peer{credentials.uid, credentials.gid, credentials.pid});
    if (connection->start().ok()) {
      ++of_user;
      connections_.emplace(number, std::move(connection));
    }
  }
}

void ControlServer::remove(Connection& connection) {
  const int fd = connection.fd();
  if (const auto user = per_user_.find(connection.user());
      user != per_user_.end() && --user->second == 0) {
    per_user_.erase(user);
  }
  const auto found = connections_.find(fd);
  if (found != connections_.end() && found->second.get() == &connection) {
    // Its own code is still running; the descriptor stays open until then, so no other connection
    // can get its number.
    std::shared_ptr<Connection> dying(std::move(found->second));
    connections_.erase(found);
    loop_.post([dying] {});
  }
}

}  // namespace septet::agent
