#include "serve/edge/http_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "inference/slot_message.h"
#include "inference/v2_codec.h"
#include "os/clock.h"

namespace septet::serve {

using inference::BodyFraming;
using inference::HeadResult;
using inference::HttpHead;
using inference::kBodyPadding;

namespace {

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

HttpConnection::HttpConnection(HttpServer& server, std::uint64_t id, os::UniqueFd fd,
                               const std::shared_ptr<const TlsIdentity>& identity)
    : server_(server),
      id_(id),
      fd_(std::move(fd)),
      transport_(fd_.get(), identity),
      deadline_(os::now() + server.options_.head_timeout),
      parser_(server.options_.head_limits) {}

HttpConnection::~HttpConnection() { server_.loop_.unwatch(fd_.get()); }

Result<Ok> HttpConnection::start() {
  events_ = kReading;
  return server_.loop_.watch(fd_.get(), events_, *this);
}

void HttpConnection::set_events(std::uint32_t events) {
  if (events != events_) {
    events_ = events;
    server_.loop_.change(fd_.get(), events);
  }
}

void HttpConnection::close() {
  if (state_ != State::kGone) {
    state_ = State::kGone;
    server_.loop_.unwatch(fd_.get());
    server_.forget(*this);
    lose_client();
  }
}

// Whoever works on the request in hand learns that nobody waits for it.
void HttpConnection::lose_client() {
  if (exchange_ && exchange_->client_gone_) {
    std::exchange(exchange_->client_gone_, {})();
  }
}

void HttpConnection::on_ready(std::uint32_t events) {
  switch (state_) {
    case State::kIdle:
    case State::kHead:
    case State::kBody:
    case State::kLingering:
      read_input();
      return;
    case State::kBusy:
      if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
        close();
      } else if ((events & EPOLLRDHUP) != 0) {
        set_events(0);
        deadline_ = server_.loop_.now() + server_.options_.half_closed_grace;
      } else {
        set_events(EPOLLRDHUP);  // a pipelined request waits
      }
      return;
    case State::kWriting:
      (events & (EPOLLERR | EPOLLHUP)) != 0 ? close() : flush();
      return;
    case State::kGone:
      return;
  }
}

// What TLS has decrypted already is taken at once: no event of the socket tells about it.
void HttpConnection::read_input() {
  while (read_once() && transport_.has_received() && state_ != State::kBusy &&
         state_ != State::kWriting && state_ != State::kGone) {
  }
}

// Whether anything was received.
bool HttpConnection::read_once() {
  if (state_ == State::kBody && !chunks_) {
    if (read_body_directly()) {
      dispatch();
    }
    return state_ != State::kGone;
  }
  std::string& scratch = server_.scratch_;
  const ssize_t got = transport_.receive(scratch.data(), scratch.size());
  if (got <= 0) {
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      close();
    }
    return false;
  }
  if (state_ == State::kLingering) {
    return true;
  }
  const std::string_view received(scratch.data(), static_cast<std::size_t>(got));
  if (input_.empty()) {
    process(received);
  } else {
    input_.append(received);
    const std::string input = std::exchange(input_, {});
    process(input);
  }
  return true;
}

// Takes message after message; what is left of an unfinished one goes to input_.
void HttpConnection::process(std::string_view input) {
  processing_ = true;
  bool progress = true;
  while (progress && !input.empty()) {
    std::size_t taken = 0;
    switch (state_) {
      case State::kIdle:
      case State::kHead:
        taken = take_head(input);
        break;
      case State::kBody:
        taken = take_body(input);
        break;
      case State::kBusy:
      case State::kWriting:
      case State::kLingering:
      case State::kGone:
        break;
    }
    progress = taken > 0;
    input.remove_prefix(taken);
  }
  processing_ = false;
  if (state_ != State::kGone && state_ != State::kLingering) {
    input_.assign(input);
    if (input_.empty()) {
      input_.shrink_to_fit();  // idle connections keep no buffer
    }
    // Most of a body is usually there by now.
    if (state_ == State::kBody && !chunks_ && read_body_directly()) {
      dispatch();
    }
  }
}

std::size_t HttpConnection::take_head(std::string_view input) {
  if (state_ == State::kIdle) {
    state_ = State::kHead;
    head_began_ = server_.loop_.now();
    deadline_ = head_began_ + server_.options_.head_timeout;
  }
  HttpHead head;
  const HeadResult result = parser_.parse_request(input, head);
  switch (result.state) {
    case HeadResult::State::kIncomplete:
      return 0;
    case HeadResult::State::kRefused:
      refuse(result.status, result.reason);
      return 0;
    case HeadResult::State::kComplete:
      break;
  }
  keep_alive_ = head.keep_alive;
  exchange_ = std::make_shared<HttpExchange>(
      server_, id_, std::string(input.substr(0, result.head_bytes)), head, input.data());
  exchange_->received_from_ = head_began_;
  body_received_ = 0;
  chunks_.reset();
  const HttpServerOptions& options = server_.options_;
  const os::UniqueFd descriptor = transport_.take_descriptor();
  if (const auto slot =
          descriptor.valid() || region_ ? head.find(inference::kSlotField) : std::nullopt) {
    return take_slot(*slot, descriptor) ? result.head_bytes : 0;
  }
  if (head.framing == BodyFraming::kNone) {
    dispatch();
    return result.head_bytes;
  }
  if (head.content_length > options.max_body_bytes) {
    refuse(400, fmt::format("request body of {} bytes is over the limit of {} bytes",
                            head.content_length, options.max_body_bytes));
    return 0;
  }
  state_ = State::kBody;
  deadline_ = server_.loop_.now() + options.body_grace +
              from_seconds(static_cast<double>(head.content_length) /
                           static_cast<double>(options.body_bytes_per_second));
  if (head.framing == BodyFraming::kChunked) {
    chunks_.emplace();
  }
  buffer_ =
      server_.pool_.take(head.content_length + kBodyPadding, server_.handler_.body_lead(head));
  if (buffer_.data == nullptr) {
    refuse(503, "out of memory for the request body");
    return 0;
  }
  if (head.expect_continue && input.size() == result.head_bytes) {
    const iovec part{const_cast<char*>(kContinue.data()), kContinue.size()};
    transport_.send(std::span(&part, 1));
  }
  if (head.framing == BodyFraming::kLength && head.content_length == 0) {
    dispatch();
  }
  return result.head_bytes;
}

// The body lies in the region whose descriptor came with this message or with an earlier one. What
// cannot be understood is refused without the word that grants slots, so the proxy sends it whole.
// True: dispatched.
bool HttpConnection::take_slot(std::string_view value, const os::UniqueFd& descriptor) {
  const auto slot = inference::parse_slot_message(value);
  const HttpHead& head = exchange_->head();
  if (!slot || head.content_length != 0 || head.framing == BodyFraming::kChunked ||
      slot->length > server_.options_.max_body_bytes) {
    refuse(400, "the message about a slot of shared memory is malformed");
    return false;
  }
  if (descriptor.valid()) {
    auto region = server_.regions_.open(descriptor, slot->region_bytes);
    if (!region.ok()) {
      refuse(400, region.error().text());
      return false;
    }
    region_ = *std::move(region);
  }
  if (region_->size() != slot->region_bytes) {
    refuse(400, "the message about a slot is of another region of shared memory");
    return false;
  }
  exchange_->body_ = inference::Blob{
      std::span(region_->data(), region_->size()).subspan(slot->offset, slot->length), region_};
  exchange_->body_in_slot_ = true;
  dispatch();
  return true;
}

std::size_t HttpConnection::take_body(std::string_view input) {
  if (chunks_) {
    return take_chunks(input);
  }
  const std::size_t length = exchange_->head().content_length;
  const std::size_t taken = std::min(input.size(), length - body_received_);
  std::memcpy(buffer_.data + body_received_, input.data(), taken);
  body_received_ += taken;
  if (body_received_ == length) {
    dispatch();
  }
  return taken;
}

// Whether the body is complete. Reads until it is or nothing more has come.
bool HttpConnection::read_body_directly() {
  const std::size_t length = exchange_->head().content_length;
  while (body_received_ < length) {
    const ssize_t got = transport_.receive(buffer_.data + body_received_, length - body_received_);
    if (got > 0) {
      body_received_ += static_cast<std::size_t>(got);
      continue;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      close();
    }
    return false;
  }
  return true;
}

bool HttpConnection::grow_body(std::size_t bytes) {
  const std::size_t needed = body_received_ + bytes;
  if (needed > server_.options_.max_body_bytes) {
    refuse(400, fmt::format("request body is over the limit of {} bytes",
                            server_.options_.max_body_bytes));
    return false;
  }
  if (needed + kBodyPadding > buffer_.capacity) {
    BufferPool::Buffer larger = server_.pool_.take(2 * needed + kBodyPadding,
                                                   server_.handler_.body_lead(exchange_->head()));
    if (larger.data == nullptr) {
      refuse(503, "out of memory for the request body");
      return false;
    }
    std::memcpy(larger.data, buffer_.data, body_received_);
    buffer_ = std::move(larger);
  }
  return true;
}

std::size_t HttpConnection::take_chunks(std::string_view input) {
  const inference::ChunkedDecoder::Step step = chunks_->feed(input);
  if (step.bad) {
    refuse(400, "the chunked body is malformed");
    return 0;
  }
  if (!step.data.empty()) {
    if (!grow_body(step.data.size())) {
      return 0;
    }
    std::memcpy(buffer_.data + body_received_, step.data.data(), step.data.size());
    body_received_ += step.data.size();
  }
  if (step.done) {
    dispatch();
  }
  return step.consumed;
}

void HttpConnection::dispatch() {
  if (buffer_.data != nullptr) {
    std::memset(buffer_.data + body_received_, 0, kBodyPadding);
    exchange_->body_ = inference::Blob{{buffer_.data, body_received_}, std::move(buffer_.owner)};
    buffer_ = {};
  }
  state_ = State::kBusy;
  deadline_ = Instant::max();
  exchange_->received_until_ = os::now();
  server_.handler_.handle(exchange_);
}

void HttpConnection::end_when_idle() {
  ending_ = true;
  if (state_ == State::kIdle) {
    close();
  }
}

void HttpConnection::check_deadline(Instant now) {
  if (now < deadline_) {
    return;
  }
  if (state_ == State::kHead || state_ == State::kBody) {
    exchange_.reset();
    refuse(408, "the request did not arrive in time");
  } else if (state_ == State::kBusy) {
    deadline_ = Instant::max();
    lose_client();  // what is executed already is still answered
  } else {
    close();
  }
}

}  // namespace septet::serve
