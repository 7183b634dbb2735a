// The second half of ClientConnection: handing the request over, writing the reply, the end.

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
constexpr std::string_view kText = "text/plain";

}  // namespace

void ClientConnection::submit() {
  state_ = State::kWaiting;
  reply_ended_ = false;
  since_ = reactor_.now();
  reactor_.count_request();
  if (route_.kind == RouteKind::kLive) {
    answer({200, kText, {}});
    return;
  }
  if (route_.kind == RouteKind::kReady) {
    answer({reactor_.dispatcher().any_up() ? 200U : 400U, kText, {}});
    return;
  }
  if (route_.kind == RouteKind::kStatus) {
    answer({200, "application/json", reactor_.status_json()});
    return;
  }
  write_request();
  if (body_.valid() && body_.in_slot()) {
    exchange_.slot = &body_;
    exchange_.slot_head.clear();
    append_slot_request_head(
        exchange_.slot_head, head_,
        {reactor_.bodies().region()->size(), body_.offset() + body_at_, exchange_.body.size()});
  }
  exchange_.is_head_request = head_.method == "HEAD";
  exchange_.deadline = reactor_.now() + reactor_.options().request_timeout;
  if (route_.kind == RouteKind::kInfer) {
    if (wishes_.has_deadline()) {
      exchange_.deadline = std::min(exchange_.deadline, reactor_.now() + wishes_.timeout);
    }
    reactor_.submit(exchange_, Reactor::Protocol::kHttp, route_.model, wishes_);
  } else {
    const FanOut::Question question{exchange_.head, exchange_.body, exchange_.is_head_request,
                                    exchange_.deadline};
    fan_out_ = std::make_unique<FanOut>(reactor_, *this, route_, question);
    fan_out_->start();
  }
}

// The head for the replica, and what it says to the dispatcher. Those of the same head stay; only a
// chunked body's length is not in its head.
void ClientConnection::write_request() {
  if (written_ && head_.framing != BodyFraming::kChunked) {
    return;
  }
  written_ = true;
  exchange_.head.clear();
  const bool has_body = head_.framing != BodyFraming::kNone;
  append_request_head(
      exchange_.head, head_,
      has_body ? std::optional<std::uint64_t>(exchange_.body.size()) : std::nullopt);
  wishes_ = {};
  for (const inference::HttpField& field : head_.fields) {
    wishes_.read_field(field.name, field.value);
  }
}

ClientConnectionEnds ClientConnection::ends() const {
  return keep_alive_ ? ClientConnectionEnds::kNo : ClientConnectionEnds::kYes;
}

void ClientConnection::on_merged(const MergedReply& reply) {
  answer({reply.status, reply.content_type, reply.body});
}

void ClientConnection::answer(const OwnReply& reply) {
  reply_head_.clear();
  append_own_reply(reply_head_, reply, ends());
  note_reply(reply.status);
  state_ = State::kReply;
  reply_ended_ = true;
  write(reply_head_, {});
  if (state_ == State::kReply && out_.empty()) {
    request_done();
  }
}

void ClientConnection::answer_error(unsigned status, std::string_view message) {
  std::string body = "{\"error\":";
  append_json_string(body, message);
  body += '}';
  answer({status, "application/json", body});
}

// The request cannot be read to its end, so the connection is of no more use.
void ClientConnection::refuse(unsigned status, std::string_view message) {
  keep_alive_ = false;
  head_.clear();  // it may have been read in part only
  reactor_.count_request();
  answer_error(status, message);
}

void ClientConnection::on_whole_reply(const WholeReply& reply) {
  if (reply.head.status / 100 == 2) {
    reactor_.learn_model(Reactor::Protocol::kHttp, route_.model);
  }
  const bool plain = head_.minor_version >= 1 && keep_alive_;
  if (!plain) {
    reply_head_.clear();
    append_reply_head(reply_head_, reply.head, head_.minor_version, ends());
  }
  note_reply(reply.head.status);
  state_ = State::kReply;
  reply_ended_ = true;
  write(plain ? reply.plain_head : reply_head_, reply.body);
  if (state_ == State::kReply && out_.empty()) {
    request_done();
  }
}

void ClientConnection::on_reply_head(const inference::HttpHead& head) {
  reactor_.forbid_repeat(exchange_);
  streamed_chunked_ = head.framing == BodyFraming::kChunked && head_.minor_version >= 1;
  const bool has_end = streamed_chunked_ || head.framing == BodyFraming::kLength;
  keep_alive_ = keep_alive_ && has_end;
  reply_head_.clear();
  append_reply_head(reply_head_, head, head_.minor_version, ends());
  note_reply(head.status);
  state_ = State::kReply;
  write(reply_head_, {});
}

ReplySink::Flow ClientConnection::on_reply_data(std::string_view data, std::string_view wire) {
  write(streamed_chunked_ ? wire : data, {});
  return out_.size() - out_sent_ > kPauseBytes ? Flow::kPause : Flow::kGoOn;
}

void ClientConnection::on_reply_end() {
  reply_ended_ = true;
  if (state_ == State::kReply && out_.empty()) {
    request_done();
  }
}

void ClientConnection::on_no_reply(unsigned status, std::string_view message) {
  if (state_ == State::kReply) {
    close();  // the reply had begun; only the cut tells the client that it is not complete
  } else if (state_ == State::kWaiting) {
    answer_error(status, message);
  }
}

void ClientConnection::note_reply(unsigned status) {
  reactor_.count_reply(status);
  if (reactor_.access_log().wants_next()) {
    reactor_.access_log().add({.protocol = "http",
                               .method = head_.method,
                               .target = head_.target,
                               .status = status,
                               .took = reactor_.now() - since_,
                               .request_id = head_.find("x-request-id").value_or(""),
                               .traceparent = head_.find("traceparent").value_or("")});
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
  if (exchange_.connection != nullptr && out_.size() - out_sent_ <= kPauseBytes / 2) {
    exchange_.connection->resume();
  }
  return drained && state_ != State::kClosed;
}

void ClientConnection::request_done() {
  fan_out_.reset();
  body_.release();
  exchange_.body = {};
  exchange_.slot = nullptr;
  chunks_.reset();
  since_ = reactor_.now();
  reactor_.memory_released();
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
    reactor_.memory_released();
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
  fan_out_.reset();
  reactor_.abandon(exchange_);
  body_.release();
  if (buffer_) {
    reactor_.buffers().give_back(std::move(buffer_));
  }
}

}  // namespace septet::balance
