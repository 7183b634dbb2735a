// The second half of ClientConnection: writing the reply, the end.

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <span>

#include "balance/edge/client_connection.h"
#include "balance/edge/reactor.h"

namespace septet::balance {

using inference::BodyFraming;

namespace {

// A streamed reply waits for the client when so much of it is unsent.
constexpr std::size_t kPauseBytes = 256 * 1024;
// After a refusal the client may go on sending for so long; closing at once would reset the
// connection and take the refusal with it.
constexpr Duration kLinger = seconds(2);

}  // namespace

void ClientConnection::wait_for_reply() {
  state_ = State::kWaiting;
  reply_ended_ = false;
  since_ = reactor_.now();
}

ClientConnectionEnds ClientConnection::ends() const {
  return keep_alive_ ? ClientConnectionEnds::kNo : ClientConnectionEnds::kYes;
}

void ClientConnection::write_own(const OwnReply& reply) {
  reply_head_.clear();
  append_own_reply(reply_head_, reply, ends());
  write_all(reply_head_, {});
}

// The request cannot be read to its end, so the connection is of no more use.
void ClientConnection::refuse(unsigned status, std::string_view message) {
  keep_alive_ = false;
  request_.head().clear();  // it may have been read in part only
  request_.refuse(status, message);
}

void ClientConnection::write_whole(const WholeReply& reply) {
  const bool plain = request_.head().minor_version >= 1 && keep_alive_;
  if (!plain) {
    reply_head_.clear();
    append_reply_head(reply_head_, reply.head, request_.head().minor_version, ends());
  }
  write_all(plain ? reply.plain_head : reply_head_, reply.body);
}

void ClientConnection::write_all(std::string_view head, std::string_view body) {
  state_ = State::kReply;
  write(head, body);
  write_end();
}

void ClientConnection::write_head(const inference::HttpHead& head) {
  const unsigned minor_version = request_.head().minor_version;
  streamed_chunked_ = head.framing == BodyFraming::kChunked && minor_version >= 1;
  const bool has_end = streamed_chunked_ || head.framing == BodyFraming::kLength;
  keep_alive_ = keep_alive_ && has_end;
  reply_head_.clear();
  append_reply_head(reply_head_, head, minor_version, ends());
  state_ = State::kReply;
  write(reply_head_, {});
}

ReplySink::Flow ClientConnection::write_data(std::string_view data, std::string_view wire) {
  write(streamed_chunked_ ? wire : data, {});
  return out_.size() - out_sent_ > kPauseBytes ? ReplySink::Flow::kPause : ReplySink::Flow::kGoOn;
}

void ClientConnection::write_end() {
  reply_ended_ = true;
  if (state_ == State::kReply && out_.empty()) {
    request_done();
  }
}

// Writes, or keeps what the socket does not take.
void ClientConnection::write(std::string_view head, std::string_view body) {
  std::size_t written = 0;
  if (out_.empty()) {
    const std::size_t size = head.size() + body.size();
    ssize_t sent = 0;
    do {
      sent = send_from(written, head, body);
      if (sent < 0 && errno != EAGAIN) {
        close();
        return;
      }
      written += sent < 0 ? 0 : static_cast<std::size_t>(sent);
    } while (tls_ && sent > 0 && written < size);  // which sends record by record
    if (written == size) {
      return;
    }
    want_writable(true);
  }
  const std::size_t of_head = std::min(written, head.size());
  out_.append(head.substr(of_head)).append(body.substr(written - of_head));
}

// As sendmsg does, without the first bytes of both together.
ssize_t ClientConnection::send_from(std::size_t begin, std::string_view head,
                                    std::string_view body) {
  const std::size_t of_head = std::min(begin, head.size());
  head.remove_prefix(of_head);
  body.remove_prefix(begin - of_head);
  std::array<iovec, 2> parts{};
  std::size_t count = 0;
  for (const std::string_view text : {head, body}) {
    if (!text.empty()) {
      parts[count++] = {const_cast<char*>(text.data()), text.size()};
    }
  }
  if (tls_) {
    return tls_->send(std::span(parts).first(count));
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
}

// Writes what was kept; false when the connection is gone or still full.
bool ClientConnection::flush() {
  while (out_sent_ < out_.size()) {
    const ssize_t sent = send_from(out_sent_, out_, {});
    if (sent < 0 && errno == EAGAIN) {
      break;
    }
    if (sent < 0) {
      close();
      return false;
    }
    out_sent_ += static_cast<std::size_t>(sent);
    since_ = reactor_.now();
  }
  const bool drained = out_sent_ == out_.size();
  if (drained) {
    out_.clear();
    out_sent_ = 0;
    want_writable(false);
    if (state_ == State::kReply && reply_ended_) {
      request_done();
      return state_ != State::kClosed;
    }
  }
  if (out_.size() - out_sent_ <= kPauseBytes / 2) {
    request_.resume();
  }
  return drained && state_ != State::kClosed;
}

void ClientConnection::request_done() {
  request_.clear();
  chunks_.reset();
  since_ = reactor_.now();
  if (!keep_alive_) {
    state_ = State::kClosing;
    linger();
    return;
  }
  state_ = State::kHead;
  drive();
}

// The reply is out; reads what the client still sends, so that it is not reset before it has read.
void ClientConnection::linger() {
  if (tls_) {
    tls_->finish_sending();
  }
  shutdown(fd_.get(), SHUT_WR);
  std::array<char, 4096> waste{};
  for (int i = 0; i < 64; ++i) {
    const ssize_t got = recv(fd_.get(), waste.data(), waste.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
      close();
      return;
    }
    if (got < 0) {
      return;
    }
  }
}

void ClientConnection::check_time(Instant now) {
  const ProxyOptions& options = reactor_.options();
  const Duration waited = now - since_;
  switch (state_) {
    case State::kHead:
      if (waited > (buffer_ ? options.head_timeout : options.idle_timeout)) {
        if (buffer_) {
          refuse(408, "the request's header took too long");
        } else {
          close();
        }
      }
      break;
    case State::kBody:
    case State::kChunked:
      if (waited > options.body_timeout) {
        refuse(408, "the request's body took too long");
      }
      break;
    case State::kReply:
      if (!out_.empty() && waited > options.body_timeout) {
        close();
      }
      break;
    case State::kClosing:
      if (waited > kLinger) {
        close();
      }
      break;
    case State::kMemory:
      if (waited > options.request_timeout) {
        refuse(503, "the proxy has no memory left for this request; try again");
      }
      break;
    case State::kWaiting:  // the dispatcher's and the replica's deadline
    case State::kClosed:
      break;
  }
}

void ClientConnection::close() {
  if (state_ != State::kClosed) {
    let_go();
    reactor_.retire(*this);
  }
}

void ClientConnection::let_go() {
  state_ = State::kClosed;
  if (fd_.valid()) {  // else it speaks HTTP/2 and was handed over
    reactor_.loop().unwatch(fd_.get());
    tls_.reset();
    fd_.reset();
  }
  request_.abandon();
  if (buffer_) {
    reactor_.buffers().give_back(std::move(buffer_));
  }
}

}  // namespace septet::balance
