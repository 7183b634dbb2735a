#include "support/fake_replica.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <map>

#include "base/check.h"
#include "inference/http1.h"
#include "inference/slot_call.h"
#include "inference/slot_message.h"
#include "os/event_loop.h"
#include "os/sealed_memory.h"

namespace septet::test {

namespace {

constexpr std::size_t kReadBytes = 256 * 1024;

}  // namespace

std::string http_reply(std::string_view body, std::string_view content_type) {
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n{}",
                     content_type, body.size(), body);
}

std::string slot_call_reply(std::string_view grpc_status, std::string_view body) {
  return fmt::format("HTTP/1.1 200 OK\r\n{}: {}\r\nContent-Length: {}\r\n\r\n{}",
                     inference::kGrpcStatusField, grpc_status, body.size(), body);
}

class FakeReplica::Server : os::EventLoop::Watcher {
 public:
  Server(FakeReplica& owner, const Options& options, Script script)
      : owner_(owner), options_(options), script_(std::move(script)), scratch_(kReadBytes, '\0') {
    Result<os::UniqueFd> fd = os::listen_on(options.listen);
    CHECK(fd.ok());
    listener_ = std::move(*fd);
    owner_.endpoint_ =
        options.listen.is_unix() ? options.listen : os::local_endpoint(listener_.get());
    CHECK(loop_.watch(listener_.get(), EPOLLIN, *this).ok());
  }
  ~Server() override {
    connections_.clear();
    loop_.unwatch(listener_.get());
  }

  os::EventLoop& loop() { return loop_; }

  void on_ready(std::uint32_t /*events*/) override {
    for (os::UniqueFd fd = os::accept_from(listener_.get()); fd.valid();
         fd = os::accept_from(listener_.get())) {
      ++owner_.connections_;
      const int number = fd.get();
      auto connection = std::make_unique<Connection>(*this, std::move(fd));
      CHECK(loop_.watch(number, EPOLLIN, *connection).ok());
      connections_[number] = std::move(connection);
    }
  }

 private:
  struct Connection final : os::EventLoop::Watcher {
    Connection(Server& owner, os::UniqueFd socket) : server(owner), fd(std::move(socket)) {}
    ~Connection() override { server.loop_.unwatch(fd.get()); }
    void on_ready(std::uint32_t events) override { server.serve(*this, events); }
    Server& server;
    os::UniqueFd fd;
    inference::HttpHeadParser parser;
    inference::HttpHead head;
    std::string in;
    std::string head_text;
    FakeRequest request;
    bool in_body = false;
    std::uint64_t body_left = 0;
    std::string out;
    FakeAnswer::Then then = FakeAnswer::Then::kKeep;
    bool busy = false;
    bool grants_slots = false;  // in the next reply
    bool grants_calls = false;
    os::UniqueFd descriptor;
    std::shared_ptr<const os::SealedMemory> region;
  };

  void serve(Connection& connection, std::uint32_t events) {
    if ((events & EPOLLOUT) != 0 && !flush(connection)) {
      return;
    }
    if ((events & ~std::uint32_t{EPOLLOUT}) == 0) {
      return;
    }
    const ssize_t got = os::receive_with_descriptor(connection.fd.get(), scratch_.data(),
                                                    scratch_.size(), connection.descriptor);
    if (got <= 0) {
      if (got == 0 || errno != EAGAIN) {
        connections_.erase(connection.fd.get());
      }
      return;
    }
    take(connection, std::string_view(scratch_.data(), static_cast<std::size_t>(got)));
  }

  void take(Connection& connection, std::string_view bytes) {
    if (connection.in_body) {
      const std::string_view body = bytes.substr(0, connection.body_left);
      connection.body_left -= body.size();
      if (options_.keep_bodies) {
        connection.request.body += body;
      }
      connection.in += bytes.substr(body.size());
    } else {
      connection.in += bytes;
    }
    next(connection);
  }

  void next(Connection& connection) {
    if (connection.busy) {
      return;
    }
    if (!connection.in_body) {
      const auto result = connection.parser.parse_request(connection.in, connection.head);
      if (result.state == inference::HeadResult::State::kRefused) {
        connections_.erase(connection.fd.get());
        return;
      }
      if (result.state != inference::HeadResult::State::kComplete) {
        return;
      }
      FakeRequest& request = connection.request;
      request = {std::string(connection.head.method),
                 std::string(connection.head.target),
                 connection.in.substr(0, result.head_bytes),
                 connection.head.content_length,
                 {}};
      connection.body_left = connection.head.content_length;
      connection.in_body = true;
      const std::string rest = connection.in.substr(result.head_bytes);
      connection.in.clear();
      if (options_.slots && !take_slot(connection)) {
        connections_.erase(connection.fd.get());
        return;
      }
      take(connection, rest);
      return;
    }
    if (connection.body_left == 0) {
      connection.in_body = false;
      connection.busy = true;
      answer(connection);
    }
  }

  // False when the message about a slot makes no sense.
  bool take_slot(Connection& connection) {
    FakeRequest& request = connection.request;
    connection.grants_slots = connection.head.find(inference::kSlotsField).has_value();
    connection.grants_calls =
        options_.slot_calls && connection.head.find(inference::kSlotCallsField).has_value();
    const auto value = connection.head.find(inference::kSlotField);
    if (!value) {
      return true;
    }
    const auto slot = inference::parse_slot_message(*value);
    if (slot && connection.descriptor.valid()) {
      auto region = os::SealedMemory::open(connection.descriptor, slot->region_bytes);
      connection.region = region.ok() ? *region : nullptr;
      connection.descriptor.reset();
    }
    if (!slot || !connection.region || connection.region->size() != slot->region_bytes) {
      return false;
    }
    connection.grants_slots = request.in_slot = true;
    request.body_bytes = slot->length;
    if (options_.keep_bodies) {
      request.body.assign(reinterpret_cast<const char*>(connection.region->data()) + slot->offset,
                          slot->length);
    }
    return true;
  }

  void answer(Connection& connection) {
    if (connection.request.method == "POST") {
      ++owner_.requests_;
    }
    FakeAnswer answer = script_(connection.request);
    connection.out = std::move(answer.bytes);
    const std::size_t line_end = connection.out.find("\r\n");
    if (connection.grants_slots && line_end != std::string::npos &&
        connection.out.find(inference::kSlotsField) == std::string::npos) {
      connection.out.insert(line_end + 2, fmt::format("{}: {}\r\n", inference::kSlotsField,
                                                      inference::kSlotsVersion));
    }
    if (connection.grants_calls && line_end != std::string::npos) {
      connection.out.insert(line_end + 2, fmt::format("{}: {}\r\n", inference::kSlotCallsField,
                                                      inference::kSlotsVersion));
    }
    connection.then = answer.then;
    if (answer.service == Duration::zero()) {
      finish(connection.fd.get());
      return;
    }
    const Instant start = options_.one_at_a_time ? std::max(free_at_, loop_.now()) : loop_.now();
    free_at_ = start + answer.service;
    loop_.call_at(free_at_, [this, number = connection.fd.get()] { finish(number); });
  }

  void finish(int number) {
    const auto found = connections_.find(number);
    if (found != connections_.end()) {
      flush(*found->second);
    }
  }

  // False when the connection is gone.
  bool flush(Connection& connection) {
    while (!connection.out.empty()) {
      const ssize_t sent =
          send(connection.fd.get(), connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EAGAIN) {
        loop_.change(connection.fd.get(), EPOLLIN | EPOLLOUT);
        return true;
      }
      if (sent < 0) {
        connections_.erase(connection.fd.get());
        return false;
      }
      connection.out.erase(0, static_cast<std::size_t>(sent));
    }
    if (!connection.busy) {
      return true;
    }
    connection.busy = false;
    if (connection.then != FakeAnswer::Then::kKeep) {
      const linger reset{1, 0};
      if (connection.then == FakeAnswer::Then::kReset) {
        setsockopt(connection.fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      }
      connections_.erase(connection.fd.get());
      return false;
    }
    loop_.change(connection.fd.get(), EPOLLIN);
    next(connection);
    return true;
  }

  FakeReplica& owner_;
  Options options_;
  Script script_;
  std::string scratch_;
  os::EventLoop loop_;
  os::UniqueFd listener_;
  std::map<int, std::unique_ptr<Connection>> connections_;
  Instant free_at_{};
};

FakeReplica::FakeReplica(Options options, Script script)
    : server_(std::make_unique<Server>(*this, options, std::move(script))),
      thread_([this] { server_->loop().run(); }) {}

FakeReplica::~FakeReplica() {
  server_->loop().stop();
  thread_.join();
  if (endpoint_.is_unix()) {
    ::unlink(endpoint_.unix_path.c_str());
  }
}

}  // namespace septet::test
