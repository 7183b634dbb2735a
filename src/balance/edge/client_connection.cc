#include "balance/edge/client_connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "balance/edge/reactor.h"
#include "base/text.h"
#include "inference/v2_codec.h"

namespace septet::balance {

using inference::BodyFraming;
using inference::HeadResult;

namespace {

constexpr std::uint32_t kReadEvents = EPOLLIN | EPOLLRDHUP | EPOLLET;
constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::size_t kTensorAlignment = 64;  // of vector instructions
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

ClientConnection::ClientConnection(Reactor& reactor, os::UniqueFd fd,
                                   const inference::TlsIdentity* tls)
    : reactor_(reactor),
      fd_(std::move(fd)),
      tls_(tls == nullptr ? nullptr : std::make_unique<inference::TlsStream>(fd_.get(), *tls)),
      since_(reactor.now()),
      parser_({reactor.options().max_head_bytes, 100}),
      exchange_(*this) {}

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
  keep_alive_ = head_.keep_alive;
  begin_body();
  return true;
}

// Takes a head apart that is not the one before.
HeadResult ClientConnection::take_head() {
  HeadResult result = parser_.parse_request(buffered(), head_);
  in_head_ = result.state == HeadResult::State::kIncomplete;
  if (result.state == HeadResult::State::kComplete) {
    known_.keep(buffered().substr(0, result.head_bytes), head_);
    begin_ += result.head_bytes;
    route_ = find_route(head_.method, head_.target);
    written_ = false;
  }
  return result;
}

void ClientConnection::begin_body() {
  body_bytes_ = 0;
  exchange_.body = {};
  exchange_.slot = nullptr;
  // What a replica behind us may not know, it may take for something else.
  constexpr std::array<std::string_view, 7> kMethods = {"POST",   "GET",     "HEAD", "PUT",
                                                        "DELETE", "OPTIONS", "PATCH"};
  if (std::find(kMethods.begin(), kMethods.end(), head_.method) == kMethods.end()) {
    refuse(405, "this method is not served here");
    return;
  }
  if (!head_.target.starts_with('/')) {
    refuse(400, "the request target has to be a path");
    return;
  }
  const std::size_t limit = reactor_.options().max_body_bytes;
  if (head_.framing == BodyFraming::kLength && head_.content_length > limit) {
    refuse(400, "request body of " + std::to_string(head_.content_length) +
                    " bytes is larger than the limit of " + std::to_string(limit) + " bytes");
    return;
  }
  if (head_.expect_continue && begin_ == end_) {
    write(kContinue, {});
  }
  switch (head_.framing) {
    case BodyFraming::kNone:
    case BodyFraming::kUntilClose:
      submit();
      break;
    case BodyFraming::kLength:
      body_left_ = head_.content_length;
      place_body();
      break;
    case BodyFraming::kChunked:
      chunks_.emplace();
      chunks_at_ = begin_;
      state_ = State::kChunked;
      break;
  }
}

// Memory for the body; in a slot, where most of it is tensors: then they are aligned, and a replica
// that takes slots reads them there. None (not valid) when there is none for now.
void ClientConnection::take_memory() {
  body_at_ = 0;
  const std::uint64_t json_bytes =
      parse_uint(head_.find(inference::kJsonLengthHeader).value_or("")).value_or(body_left_);
  if (reactor_.slots_in_use() && route_.kind == RouteKind::kInfer && json_bytes <= body_left_ / 2 &&
      !head_.find("content-encoding")) {
    const std::size_t lead = (kTensorAlignment - json_bytes % kTensorAlignment) % kTensorAlignment;
    body_ = reactor_.bodies().take_slot(lead + body_left_);
    if (body_.valid()) {
      body_at_ = lead;
      return;
    }
  }
  body_ = reactor_.bodies().take(body_left_);
}

// A body that fits behind its head stays in the buffer; others get memory of their own.
void ClientConnection::place_body() {
  state_ = State::kBody;
  if (body_left_ <= reactor_.buffers().buffer_bytes() - begin_) {
    return;
  }
  take_memory();
  if (!body_.valid()) {
    if (reactor_.bodies().fits(body_left_)) {
      state_ = State::kMemory;
      reactor_.wait_for_memory(*this);
    } else {
      refuse(503, "the proxy's memory limit is smaller than this request");
    }
    return;
  }
  const std::string_view here = buffered();
  std::memcpy(body_.data() + body_at_, here.data(), here.size());
  body_bytes_ = here.size();
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
  if (body_.valid()) {
    char* const to = body_.data() + body_at_ + body_bytes_;
    const std::size_t bytes = body_left_ == 0 ? 0 : receive(to, body_left_);
    body_bytes_ += bytes;
    body_left_ -= bytes;
    if (body_left_ == 0) {
      exchange_.body = {body_.data() + body_at_, body_bytes_};
      submit();
      return true;
    }
    since_ = bytes > 0 ? reactor_.now() : since_;
    return bytes > 0;
  }
  if (buffered().size() >= body_left_) {
    exchange_.body = buffered().substr(0, body_left_);
    begin_ += body_left_;
    submit();
    return true;
  }
  // The head's views point into the buffer, so it does not move; there is room behind.
  const std::size_t bytes = receive(buffer_.get() + end_, reactor_.buffers().buffer_bytes() - end_);
  end_ += bytes;
  since_ = bytes > 0 ? reactor_.now() : since_;
  return bytes > 0;
}

bool ClientConnection::grow_chunked_body(std::size_t bytes) {
  if (body_bytes_ + bytes > reactor_.options().max_body_bytes) {
    refuse(400, "request body is larger than the limit of " +
                    std::to_string(reactor_.options().max_body_bytes) + " bytes");
    return false;
  }
  if (body_bytes_ + bytes > body_.capacity()) {
    Body larger = reactor_.bodies().take(body_bytes_ + bytes);
    if (!larger.valid()) {
      refuse(503, "no memory for a request body of unknown length; try again");
      return false;
    }
    if (body_bytes_ > 0) {
      std::memcpy(larger.data(), body_.data(), body_bytes_);
    }
    body_ = std::move(larger);
  }
  return true;
}

bool ClientConnection::take_chunks() {
  while (begin_ < end_) {
    const inference::ChunkedDecoder::Step step = chunks_->feed(buffered());
    if (step.bad) {
      refuse(400, "malformed chunked body");
      return true;
    }
    if (!step.data.empty()) {
      if (!grow_chunked_body(step.data.size())) {
        return true;
      }
      std::memcpy(body_.data() + body_bytes_, step.data.data(), step.data.size());
      body_bytes_ += step.data.size();
    }
    begin_ += step.consumed;
    if (step.done) {
      exchange_.body = {body_.data(), body_bytes_};
      submit();
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
