#include "serve/edge/http_server.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "inference/v2_codec.h"
#include "serve/edge/http_connection.h"

namespace septet::serve {

namespace {

constexpr Duration kSweepEvery = milliseconds(500);
constexpr Duration kAcceptPause = milliseconds(100);
constexpr std::size_t kKeptBodyBytes = std::size_t{32} << 20;

std::string_view rebase(std::string_view view, const char* from, const char* to) {
  return view.data() == nullptr ? view : std::string_view(to + (view.data() - from), view.size());
}

}  // namespace

// A listening socket.
class HttpServer::Listener : public os::EventLoop::Watcher {
 public:
  Listener(HttpServer& server, os::UniqueFd fd, std::string unix_path)
      : server_(server), fd_(std::move(fd)), unix_path_(std::move(unix_path)) {}
  ~Listener() override {
    server_.loop_.unwatch(fd_.get());
    if (!unix_path_.empty()) {
      ::unlink(unix_path_.c_str());
    }
  }
  void on_ready(std::uint32_t /*events*/) override { server_.accept_all(*this); }
  int fd() const { return fd_.get(); }
  bool is_unix() const { return !unix_path_.empty(); }

 private:
  HttpServer& server_;
  os::UniqueFd fd_;
  std::string unix_path_;  // removed with the listener
};

HttpExchange::HttpExchange(HttpServer& server, std::uint64_t connection, std::string head_text,
                           const inference::HttpHead& head, const char* head_origin)
    : link_(server.link_), connection_(connection), head_text_(std::move(head_text)), head_(head) {
  const char* to = head_text_.data();
  head_.method = rebase(head.method, head_origin, to);
  head_.target = rebase(head.target, head_origin, to);
  for (inference::HttpField& field : head_.fields) {
    field.name = rebase(field.name, head_origin, to);
    field.value = rebase(field.value, head_origin, to);
  }
}

void HttpExchange::own_body() {
  std::vector<std::byte> copy(body_.size() + inference::kBodyPadding);
  std::copy(body_.bytes.begin(), body_.bytes.end(), copy.begin());
  const std::size_t size = body_.size();
  body_ = inference::own_bytes(std::move(copy));
  body_.bytes = body_.bytes.first(size);
}

std::uint64_t HttpExchange::max_body_bytes() const {
  return link_->server->options().max_body_bytes;
}

std::size_t HttpExchange::connection_count() const { return link_->server->connection_count(); }

void HttpExchange::respond(HttpResponse response) {
  if (std::this_thread::get_id() == link_->thread) {
    if (link_->server != nullptr) {
      link_->server->deliver(connection_, std::move(response));
    }
    return;
  }
  auto shared = std::make_shared<HttpResponse>(std::move(response));
  link_->loop->post([link = link_, connection = connection_, shared] {
    if (link->server != nullptr) {
      link->server->deliver(connection, std::move(*shared));
    }
  });
}

HttpServer::HttpServer(os::EventLoop& loop, HttpHandler& handler, HttpServerOptions options)
    : loop_(loop),
      handler_(handler),
      options_(std::move(options)),
      pool_(kKeptBodyBytes),
      scratch_(options_.head_limits.max_head_bytes, '\0'),
      link_(std::make_shared<HttpServerLink>(HttpServerLink{&loop, this, {}})) {
  loop_.post([link = link_] { link->thread = std::this_thread::get_id(); });
  sweep_timer_ = loop_.call_after(kSweepEvery, [this] { sweep(); });
}

HttpServer::~HttpServer() {
  link_->server = nullptr;
  loop_.cancel(sweep_timer_);
  loop_.cancel(accept_timer_);
}

Result<os::Endpoint> HttpServer::listen(const os::Endpoint& endpoint) {
  auto fd = os::listen_on(endpoint);
  if (!fd.ok()) {
    return fd.error();
  }
  const os::Endpoint real = endpoint.is_unix() ? endpoint : os::local_endpoint(fd->get());
  listeners_.push_back(std::make_unique<Listener>(*this, std::move(*fd), endpoint.unix_path));
  SEPTET_TRY(loop_.watch(listeners_.back()->fd(), EPOLLIN, *listeners_.back()));
  return real;
}

void HttpServer::stop_listening() {
  listening_ = false;
  loop_.cancel(accept_timer_);
  listeners_.clear();
  std::vector<HttpConnection*> all;
  for (const auto& [id, connection] : connections_) {
    all.push_back(connection.get());
  }
  for (HttpConnection* connection : all) {
    connection->end_when_idle();
  }
}

void HttpServer::accept_all(Listener& listener) {
  for (;;) {
    if (connections_.size() >= options_.max_connections) {
      pause_accepting();
      return;
    }
    os::UniqueFd fd = os::accept_from(listener.fd());
    if (!fd.valid()) {
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        pause_accepting();  // out of descriptors or memory: what there is goes on
      }
      return;
    }
    const std::uint64_t id = ++last_connection_;
    auto connection = std::make_unique<HttpConnection>(*this, id, std::move(fd),
                                                       listener.is_unix() ? nullptr : options_.tls);
    if (connection->start().ok()) {
      connections_.emplace(id, std::move(connection));
    }
  }
}

void HttpServer::pause_accepting() {
  if (accept_timer_.armed()) {
    return;
  }
  for (const auto& listener : listeners_) {
    loop_.change(listener->fd(), 0);
  }
  accept_timer_ = loop_.call_after(kAcceptPause, [this] {
    accept_timer_ = {};
    for (const auto& listener : listeners_) {
      loop_.change(listener->fd(), EPOLLIN);
    }
  });
}

void HttpServer::forget(HttpConnection& connection) {
  const auto found = connections_.find(connection.id());
  if (found == connections_.end()) {
    return;
  }
  dead_.push_back(std::move(found->second));
  connections_.erase(found);
  if (dead_.size() == 1) {
    loop_.post([link = link_] {
      if (link->server != nullptr) {
        link->server->dead_.clear();
      }
    });
  }
}

void HttpServer::deliver(std::uint64_t connection, HttpResponse response) {
  const auto found = connections_.find(connection);
  if (found != connections_.end()) {
    found->second->respond(std::move(response));
  }
}

void HttpServer::sweep() {
  const Instant now = loop_.now();
  std::vector<HttpConnection*> all;
  all.reserve(connections_.size());
  for (const auto& [id, connection] : connections_) {
    all.push_back(connection.get());
  }
  for (HttpConnection* connection : all) {
    connection->check_deadline(now);
  }
  sweep_timer_ = loop_.call_after(kSweepEvery, [this] { sweep(); });
}

}  // namespace septet::serve
