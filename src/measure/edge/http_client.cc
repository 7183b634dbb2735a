#include "measure/edge/http_client.h"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "inference/v2_codec.h"
#include "os/clock.h"

namespace septet::measure {

namespace {

constexpr std::size_t kBufferBytes = 16 * 1024;
constexpr std::size_t kKeptErrorBytes = 4096;
constexpr std::size_t kKeptBodyBytes = 64 * 1024 * 1024;

}  // namespace

HttpClient::HttpClient(os::EventLoop& loop, os::Endpoint endpoint, Listener& listener,
                       BodyUse body_use, TlsPeer tls)
    : loop_(loop),
      endpoint_(std::move(endpoint)),
      listener_(listener),
      body_use_(body_use),
      tls_(std::move(tls)),
      buffer_(kBufferBytes) {}

HttpClient::~HttpClient() { close(); }

void HttpClient::close() {
  if (fd_.valid()) {
    loop_.unwatch(fd_.get());
    transport_.reset();
    fd_.reset();
  }
  state_ = State::kIdle;
  head_bytes_.clear();
  parser_ = inference::HttpHeadParser();
}

void HttpClient::send(const Pieces& pieces) {
  CHECK(!busy());
  pieces_ = pieces;
  head_done_ = false;
  body_done_ = false;
  body_.clear();
  head_bytes_.clear();
  answer_ = Answer{};
  answer_.sent = os::now();
  if (!fd_.valid()) {
    connect();
    return;
  }
  state_ = State::kSending;
  write_pieces();
}

void HttpClient::connect() {
  state_ = State::kConnecting;
  Result<os::UniqueFd> fd = os::start_connect(endpoint_);
  if (!fd.ok()) {
    fail(FailureKind::kConnect, fd.error().message);
    return;
  }
  fd_ = std::move(*fd);
  const Result<Ok> watched = loop_.watch(fd_.get(), EPOLLIN | EPOLLOUT, *this);
  if (!watched.ok()) {
    fd_.reset();
    fail(FailureKind::kConnect, watched.error().message);
    return;
  }
}

void HttpClient::fail(FailureKind kind, const std::string& reason) {
  CHECK(busy());
  close();
  listener_.on_failed(*this, kind, reason);
}

void HttpClient::broken(const std::string& what) {
  fail(FailureKind::kReset, fmt::format("{}: {}", endpoint_.text(), what));
}

void HttpClient::on_ready(std::uint32_t events) {
  if (state_ == State::kIdle) {
    // The server closed an idle connection, or spoke unasked; TLS has words of its own.
    if (transport_->receive(buffer_.data(), buffer_.size()) >= 0 || errno != EAGAIN) {
      close();
    }
    return;
  }
  if (state_ == State::kConnecting) {
    if (const int error = os::connect_result(fd_.get()); error != 0) {
      fail(FailureKind::kConnect,
           fmt::format("cannot connect to {}: {}", endpoint_.text(), std::strerror(error)));
      return;
    }
    transport_.emplace(loop_, fd_.get(), tls_);
    state_ = tls_.context ? State::kOpening : State::kSending;
  }
  if (state_ == State::kOpening) {
    open_transport();
    return;
  }
  // A server may answer, and close, before it has read the whole request.
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    read_bytes();
    return;
  }
  if (state_ == State::kSending && (events & EPOLLOUT) != 0) {
    write_pieces();
  }
}

void HttpClient::open_transport() {
  switch (transport_->open()) {
    case ClientTransport::Opening::kOpen:
      state_ = State::kSending;
      write_pieces();
      return;
    case ClientTransport::Opening::kUnderWay:
      return;
    case ClientTransport::Opening::kFailed:
      fail(FailureKind::kProtocol,
           fmt::format("cannot speak TLS with {}: {}", endpoint_.text(), transport_->failure()));
      return;
  }
}

void HttpClient::write_pieces() {
  while (true) {
    std::array<iovec, std::tuple_size_v<Pieces>> vectors{};
    std::size_t used = 0;
    for (const std::string_view piece : pieces_) {
      if (!piece.empty()) {
        vectors[used++] = {const_cast<char*>(piece.data()), piece.size()};
      }
    }
    if (used == 0) {
      break;
    }
    const ssize_t written = transport_->send(std::span(vectors).first(used));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      transport_->wait_for(EPOLLIN | EPOLLOUT);
      return;
    }
    if (written < 0) {
      broken(fmt::format("sending the request failed: {}", transport_->failure()));
      return;
    }
    auto left = static_cast<std::size_t>(written);
    for (std::string_view& piece : pieces_) {
      const std::size_t part = std::min(left, piece.size());
      piece.remove_prefix(part);
      left -= part;
    }
  }
  answer_.send_ended = os::now();
  state_ = State::kReceiving;
  transport_->wait_for(EPOLLIN);
}

void HttpClient::read_bytes() {
  const ssize_t got = transport_->receive(buffer_.data(), buffer_.size());
  if (got < 0) {
    if (errno != EAGAIN && errno != EINTR) {
      broken(fmt::format("receiving the answer failed: {}", transport_->failure()));
    } else if (state_ == State::kSending) {
      write_pieces();
    }
    return;
  }
  if (got == 0) {
    body_ended_by_close();
    return;
  }
  answer_.ended = loop_.now();
  if (answer_.first_byte == Instant{}) {
    answer_.first_byte = answer_.ended;
  }
  take_bytes(std::string_view(buffer_.data(), static_cast<std::size_t>(got)));
}

void HttpClient::take_bytes(std::string_view bytes) {
  while (!head_done_) {
    const bool in_parts = !head_bytes_.empty();
    if (in_parts) {
      head_bytes_ += bytes;
    }
    const std::string_view view = in_parts ? std::string_view(head_bytes_) : bytes;
    const inference::HeadResult result = parser_.parse_response(view, head_);
    if (result.state == inference::HeadResult::State::kIncomplete) {
      if (!in_parts) {
        head_bytes_ = bytes;
      }
      return;
    }
    if (result.state == inference::HeadResult::State::kRefused) {
      fail(FailureKind::kProtocol,
           fmt::format("{} does not speak HTTP as it should: {}", endpoint_.text(), result.reason));
      return;
    }
    take_head();
    // What lies behind the head is in both views; the one that was read outlives head_bytes_.
    bytes = bytes.substr(bytes.size() - (view.size() - result.head_bytes));
    head_bytes_.clear();
  }
  const std::size_t taken = body_done_ ? 0 : take_body(bytes);
  if (state_ == State::kIdle) {
    return;  // failed
  }
  if (body_done_) {
    if (taken < bytes.size()) {
      fail(FailureKind::kProtocol,
           fmt::format("{} sent bytes behind the end of its answer", endpoint_.text()));
      return;
    }
    finish();
  }
}

void HttpClient::take_head() {
  if (head_.status / 100 == 1) {
    return;  // an interim answer; the real one follows
  }
  head_done_ = true;
  keep_alive_ = head_.keep_alive;
  answer_.status = head_.status;
  body_left_ = head_.content_length;
  if (body_use_ == BodyUse::kKeep) {
    const auto json_length = head_.find(inference::kJsonLengthHeader);
    answer_.json_bytes = json_length ? parse_uint(*json_length) : std::nullopt;
  }
  chunks_ = {};
  body_done_ = head_.framing == inference::BodyFraming::kNone ||
               (head_.framing == inference::BodyFraming::kLength && body_left_ == 0);
}

std::size_t HttpClient::take_body(std::string_view bytes) {
  if (head_.framing == inference::BodyFraming::kChunked) {
    return take_chunks(bytes);
  }
  if (head_.framing == inference::BodyFraming::kUntilClose) {
    keep_body(bytes);
    return bytes.size();
  }
  const std::size_t part = std::min<std::uint64_t>(body_left_, bytes.size());
  keep_body(bytes.substr(0, part));
  body_left_ -= part;
  body_done_ = body_left_ == 0;
  return part;
}

std::size_t HttpClient::take_chunks(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && !body_done_) {
    const inference::ChunkedDecoder::Step step = chunks_.feed(bytes.substr(taken));
    if (step.bad) {
      fail(FailureKind::kProtocol, fmt::format("{} sent a broken chunked body", endpoint_.text()));
      return taken;
    }
    keep_body(step.data);
    taken += step.consumed;
    body_done_ = step.done;
  }
  return taken;
}

void HttpClient::keep_body(std::string_view bytes) {
  const bool error = answer_.status >= 400;
  if (body_use_ == BodyUse::kKeep || error) {
    const std::size_t limit = body_use_ == BodyUse::kKeep ? kKeptBodyBytes : kKeptErrorBytes;
    body_ += bytes.substr(0, limit - std::min(limit, body_.size()));
  }
}

void HttpClient::body_ended_by_close() {
  if (head_done_ && head_.framing == inference::BodyFraming::kUntilClose) {
    answer_.ended = loop_.now();
    keep_alive_ = false;
    finish();
    return;
  }
  broken(head_done_ || !head_bytes_.empty() ? "the connection closed in the middle of the answer"
                                            : "the connection closed before any answer");
}

void HttpClient::finish() {
  // An answer that came before the whole request had left makes the rest of the stream meaningless.
  const bool reusable = keep_alive_ && state_ == State::kReceiving;
  if (!reusable) {
    close();
  }
  state_ = State::kIdle;
  if (answer_.send_ended == Instant{}) {
    answer_.send_ended = answer_.ended;
  }
  answer_.body = body_;
  listener_.on_answered(*this, answer_);
}

}  // namespace septet::measure
