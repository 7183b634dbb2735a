#include "balance/edge/http2_session.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "os/endpoint.h"

namespace septet::balance {

namespace {

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::size_t kWriteBytes = 64 * 1024;
// A client that takes nothing while so many frames wait for it is not listened to.
constexpr std::size_t kMaxWaitingFrames = 1024;

}  // namespace

Http2Session::Http2Session(os::EventLoop& loop, Owner& owner, Http2Codec::Role role,
                           const Http2Codec::Limits& limits)
    : loop_(loop), owner_(owner), role_(role), codec_(owner, role, limits) {}

Http2Session::~Http2Session() {
  if (fd_.valid()) {
    loop_.unwatch(fd_.get());
  }
}

Result<Ok> Http2Session::adopt(os::UniqueFd fd, Socket socket,
                               std::unique_ptr<inference::TlsStream> tls) {
  fd_ = std::move(fd);
  tls_ = std::move(tls);
  connected_ = socket == Socket::kConnected;
  wants_writable_ = !connected_;
  events_ = EPOLLIN | EPOLLRDHUP | (wants_writable_ ? std::uint32_t{EPOLLOUT} : 0U);
  return loop_.watch(fd_.get(), events_, *this);
}

void Http2Session::close() {
  if (fd_.valid()) {
    loop_.unwatch(fd_.get());
    tls_.reset();
    fd_.reset();
    owner_.on_connection_closed();
  }
}

void Http2Session::watch_events() {
  const std::uint32_t events = (reads_ ? std::uint32_t{EPOLLIN | EPOLLRDHUP} : 0U) |
                               (wants_writable_ ? std::uint32_t{EPOLLOUT} : 0U);
  if (events != events_) {
    events_ = events;
    loop_.change(fd_.get(), events);
  }
}

void Http2Session::take(std::string_view bytes) {
  in_codec_ = true;
  const bool good = codec_.receive(bytes);
  in_codec_ = false;
  if (!good) {
    flush();  // the reason, as far as there is room for it
    close();
  }
}

void Http2Session::received(std::string_view bytes) {
  take(bytes);
  while (tls_ && tls_->has_received() && read_once()) {
  }
  flush();
  owner_.on_round_end();
}

void Http2Session::on_ready(std::uint32_t events) {
  if (!connected_ && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
    if (os::connect_result(fd_.get()) != 0) {
      close();
      owner_.on_round_end();
      return;
    }
    connected_ = true;
  }
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    while (read_once() && tls_ && tls_->has_received()) {
    }
  }
  flush();
  owner_.on_round_end();
}

// Whether bytes came.
bool Http2Session::read_once() {
  static thread_local std::array<char, kReadBytes> buffer;
  const ssize_t got = tls_ ? tls_->receive(buffer.data(), buffer.size())
                           : recv(fd_.get(), buffer.data(), buffer.size(), 0);
  if (got > 0) {
    take({buffer.data(), static_cast<std::size_t>(got)});
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    close();
  }
  return got > 0;
}

ssize_t Http2Session::send_rest() {
  iovec rest{out_.data() + out_sent_, out_.size() - out_sent_};
  return tls_ ? tls_->send({&rest, 1})
              : ::send(fd_.get(), rest.iov_base, rest.iov_len, MSG_NOSIGNAL);
}

// Takes frames from the codec into out_; false when the connection is of no more use.
bool Http2Session::fill() {
  out_.clear();
  out_sent_ = 0;
  in_codec_ = true;
  const bool good = codec_.take_output(out_, kWriteBytes);
  in_codec_ = false;
  return good;
}

void Http2Session::flush() {
  if (!fd_.valid() || !connected_ || in_codec_) {
    return;
  }
  for (;;) {
    if (out_sent_ == out_.size() && !fill()) {
      close();
      return;
    }
    if (out_.empty()) {
      break;
    }
    const ssize_t sent = send_rest();
    if (sent < 0 && errno == EAGAIN) {
      wants_writable_ = true;
      reads_ = role_ == Http2Codec::Role::kClient || codec_.waiting_frames() < kMaxWaitingFrames;
      watch_events();
      owner_.on_flushed();
      return;
    }
    if (sent < 0) {
      // What a replica said before it went may still lie in the socket: reading finds the end.
      out_sent_ = out_.size();
      if (role_ == Http2Codec::Role::kServer) {
        close();
        return;
      }
      break;
    }
    out_sent_ += static_cast<std::size_t>(sent);
  }
  wants_writable_ = false;
  reads_ = true;
  watch_events();
  if (codec_.finished()) {
    close();
  } else {
    owner_.on_flushed();
  }
}

}  // namespace septet::balance
