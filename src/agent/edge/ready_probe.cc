#include "agent/edge/ready_probe.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace septet::agent {

ReadyProbe::ReadyProbe(os::EventLoop& loop, const os::Endpoint& endpoint, const std::string& target,
                       Duration timeout, std::function<void(bool ready)> on_answer)
    : loop_(loop), on_answer_(std::move(on_answer)) {
  unsent_ = fmt::format("GET {} HTTP/1.1\r\nHost: septet\r\nConnection: close\r\n\r\n", target);
  Result<os::UniqueFd> socket = os::start_connect(endpoint);
  if (socket.ok()) {
    socket_ = *std::move(socket);
    if (loop_.watch(socket_.get(), EPOLLOUT, *this).ok()) {
      timer_ = loop_.call_after(timeout, [this] { finish(false); });
      return;
    }
    socket_.reset();
  }
  // Nobody listens yet: told from the loop, never from within this constructor.
  timer_ = loop_.call_after(Duration::zero(), [this] { finish(false); });
}

ReadyProbe::~ReadyProbe() {
  loop_.cancel(timer_);
  if (socket_.valid()) {
    loop_.unwatch(socket_.get());
  }
}

void ReadyProbe::on_ready(std::uint32_t /*events*/) {
  if (!connected_) {
    if (os::connect_result(socket_.get()) != 0) {
      finish(false);
      return;
    }
    connected_ = true;
  }
  if (!unsent_.empty()) {
    send_rest();
  } else {
    receive();
  }
}

void ReadyProbe::send_rest() {
  const ssize_t sent = send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
  if (sent < 0) {
    if (errno != EAGAIN && errno != EINTR) {
      finish(false);
    }
    return;
  }
  unsent_.erase(0, static_cast<std::size_t>(sent));
  if (unsent_.empty()) {
    loop_.change(socket_.get(), EPOLLIN);
  }
}

void ReadyProbe::receive() {
  std::array<char, 1024> buffer{};
  const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (got <= 0) {
    finish(false);
    return;
  }
  received_.append(buffer.data(), static_cast<std::size_t>(got));
  inference::HttpHead head;
  const inference::HeadResult parsed = parser_.parse_response(received_, head);
  if (parsed.state != inference::HeadResult::State::kIncomplete) {
    finish(parsed.state == inference::HeadResult::State::kComplete && head.status == 200);
  }
}

void ReadyProbe::finish(bool ready) {
  loop_.cancel(timer_);
  if (socket_.valid()) {
    loop_.unwatch(socket_.get());
    socket_.reset();
  }
  // Moved out first: the callback may destroy this object.
  const std::function<void(bool)> on_answer = std::move(on_answer_);
  on_answer(ready);
}

}  // namespace septet::agent
