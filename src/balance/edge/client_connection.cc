#include "balance/edge/client_connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "balance/edge/reactor.h"

namespace septet::balance {

using inference::BodyFraming;
using inference::HeadResult;

namespace {

constexpr std::uint32_t kReadEvents = EPOLLIN | EPOLLRDHUP | EPOLLET;
constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

ClientConnection::ClientConnection(Reactor& reactor, os::UniqueFd fd,
                                   const inference::TlsIdentity* tls)
    : reactor_(reactor),
      fd_(std::move(fd)),
      tls_(tls == nullptr ? nullptr : std::make_unique<inference::TlsStream>(fd_.get(), *tls)),
      since_(reactor.now()),
      parser_({reactor.options().max_head_bytes, 100}),
      request_(reactor, *this) {}

ClientConnection::~ClientConnection() {
  if (state_ != State::kClosed) {
    let_go();
  }
}

Result<Ok> ClientConnection::begin() {
  return reactor_.loop().watch(fd_.get(), kReadEvents, *this);
}

void ClientConnection::want_writable(bool wanted) {
  if (wanted != wants_writable_) {
    wants_writable_ = wanted;
    reactor_.loop().change(fd_.get(), kReadEvents | (wanted ? std::uint32_t{EPOLLOUT} : 0U));
  }
}

void ClientConnection::on_ready(std::uint32_t events) {
  const bool waiting = state_ == State::kWaiting || state_ == State::kReply;
  readable_ |= (events & (EPOLLIN | EPOLLRDHUP)) != 0;
  peer_closed_ |= (events & EPOLLRDHUP) != 0;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0 || (waiting && (events & EPOLLRDHUP) != 0)) {
    close();
  } else if (state_ == State::kClosing) {
    linger();
  } else if (!wants_writable_ || (events & EPOLLOUT) == 0 || flush()) {
    drive();
  }
  reactor_.pump();
}

// Goes on until the socket is empty or something has to come from elsewhere.
void ClientConnection::drive() {
  if (driving_) {
    return;
  }
  driving_ = true;
  bool again = true;
  while (again) {
    switch (state_) {
      case State::kHead:
        again = (end_ > begin_ && parse_head()) || read_head();
        break;
      case State::kBody:
        again = take_body();
        break;
      case State::kChunked:
        again = take_chunks();
        break;
      case State::kMemory:
      case State::kWaiting:
      case State::kReply:
      case State::kClosing:
      case State::kClosed:
        again = false;
        break;
    }
  }
  driving_ = false;
  if (state_ == State::kHead && begin_ == end_ && buffer_) {
    reactor_.buffers().give_back(std::move(buffer_));
    begin_ = end_ = 0;
  }
}

// How many bytes came; 0: none for now, or the client has closed.
std::size_t ClientConnection::receive(char* to, std::size_t room) {
  if (!readable_ || room == 0) {
    return 0;
  }
  const ssize_t got = tls_ ? tls_->receive(to, room) : recv(fd_.get(), to, room, 0);
  if (got < 0 && errno == EAGAIN) {
    readable_ = false;
    return 0;
  }
  if (got <= 0) {
    close();
    return 0;
  }
  const auto bytes = static_cast<std::size_t>(got);
  // A short read has emptied the socket and more will raise an event; the end behind it will not,
  // and of what TLS holds the socket knows nothing.
  readable_ = bytes == room || peer_closed_ || tls_;
  return bytes;
}

bool ClientConnection::read_head() {
  if (!buffer_) {
    if (!readable_) {
      return false;
    }
    buffer_ = reactor_.buffers().take();
    begin_ = end_ = 0;
  } else if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const std::size_t bytes = receive(buffer_.get() + end_, reactor_.buffers().buffer_bytes() - end_);
  if (end_ == 0) {
    since_ = reactor_.now();
  }
  end_ += bytes;
  return bytes > 0;
}

// Whether the bytes may become HTTP/2's preface; when they are, the connection is handed over.
bool ClientConnection::speaks_http2() {
  const std::string_view begin = buffered().substr(0, kHttp2Preface.size());
  if (!is_new_ || !kHttp2Preface.starts_with(begin)) {
    return false;
  }
  if (begin.size() == kHttp2Preface.size()) {
    reactor_.loop().unwatch(fd_.get());
    reactor_.serve_http2(std::move(fd_), std::move(tls_), buffered());
    close();
  }
  return true;
}

// True: the state has changed. False: more bytes are needed.
bool ClientConnection::parse_head() {
  if (speaks_http2()) {
    return state_ == State::kClosed;
  }
  is_new_ = false;
  if (!in_head_ && known_.begins(buffered())) {
    begin_ += known_.size();
  } else if (const HeadResult result = take_head(); result.state != HeadResult::State::kComplete) {
    if (result.state == HeadResult::State::kRefused) {
      refuse(result.status, result.reason);
    }
    return result.state == HeadResult::State::kRefused;
  }
  since_ = reactor_.now();
  keep_alive_ = request_.head().keep_alive;
  begin_body();
  return true;
}

// Takes a head apart that is not the one before.
HeadResult ClientConnection::take_head() {
  HeadResult result = parser_.parse_request(buffered(), request_.head());
  in_head_ = result.state == HeadResult::State::kIncomplete;
  if (result.state == HeadResult::State::kComplete) {
    known_.keep(buffered().substr(0, result.head_bytes), request_.head());
    begin_ += result.head_bytes;
    request_.head_read();
  }
  return result;
}

void ClientConnection::begin_body() {
  const inference::HttpHead& head = request_.head();
  if (const auto refusal = request_.refusal()) {
    refuse(refusal->status, refusal->message);
    return;
  }
  if (head.expect_continue && begin_ == end_) {
    write(kContinue, {});
  }
  switch (head.framing) {
    case BodyFraming::kNone:
    case BodyFraming::kUntilClose:
      wait_for_reply();
      request_.submit();
      break;
    case BodyFraming::kLength:
      body_left_ = head.content_length;
      place_body();
      break;
    case BodyFraming::kChunked:
      chunks_.emplace();
      chunks_at_ = begin_;
      state_ = State::kChunked;
      break;
  }
}

// A body that fits behind its head stays in the buffer; others get memory of their own.
void ClientConnection::place_body() {
  state_ = State::kBody;
  if (body_left_ <= reactor_.buffers().buffer_bytes() - begin_) {
    return;
  }
  switch (request_.take_memory(body_left_)) {
    case HttpRequest::Memory::kTaken:
      break;
    case HttpRequest::Memory::kLater:
      state_ = State::kMemory;
      reactor_.wait_for_memory(*this);
      return;
    case HttpRequest::Memory::kNever:
      refuse(503, "the proxy's memory limit is smaller than this request");
      return;
  }
  const std::string_view here = buffered();
  request_.append(here);
  body_left_ -= here.size();
  begin_ = end_;
}

void ClientConnection::memory_freed() {
  if (state_ == State::kMemory) {
    since_ = reactor_.now();
    place_body();
    drive();
  }
}

bool ClientConnection::take_body() {
  if (request_.has_memory()) {
    const std::size_t bytes = body_left_ == 0 ? 0 : receive(request_.body_end(), body_left_);
    request_.added(bytes);
    body_left_ -= bytes;
    if (body_left_ == 0) {
      wait_for_reply();
      request_.submit();
      return true;
    }
    since_ = bytes > 0 ? reactor_.now() : since_;
    return bytes > 0;
  }
  if (buffered().size() >= body_left_) {
    const std::string_view body = buffered().substr(0, body_left_);
    begin_ += body_left_;
    wait_for_reply();
    request_.submit(body);
    return true;
  }
  // The head's views point into the buffer, so it does not move; there is room behind.
  const std::size_t bytes = receive(buffer_.get() + end_, reactor_.buffers().buffer_bytes() - end_);
  end_ += bytes;
  since_ = bytes > 0 ? reactor_.now() : since_;
  return bytes > 0;
}

bool ClientConnection::take_chunks() {
  while (begin_ < end_) {
    const inference::ChunkedDecoder::Step step = chunks_->feed(buffered());
    if (step.bad) {
      refuse(400, "malformed chunked body");
      return true;
    }
    if (!step.data.empty()) {
      if (const auto refusal = request_.grow(step.data.size())) {
        refuse(refusal->status, refusal->message);
        return true;
      }
      request_.append(step.data);
    }
    begin_ += step.consumed;
    if (step.done) {
      wait_for_reply();
      request_.submit();
      return true;
    }
  }
  begin_ = end_ = chunks_at_;
  const std::size_t bytes = receive(buffer_.get() + end_, reactor_.buffers().buffer_bytes() - end_);
  end_ += bytes;
  since_ = bytes > 0 ? reactor_.now() : since_;
  return bytes > 0;
}

}  // namespace septet::balance
