#include "balance/edge/upstream_connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "balance/forwarded_head.h"
#include "balance/shared_request.h"
#include "inference/slot_message.h"
#include "os/endpoint.h"

namespace septet::balance {

using inference::BodyFraming;
using inference::HeadResult;

namespace {

constexpr std::uint32_t kReadEvents = EPOLLIN | EPOLLRDHUP | EPOLLET;

}  // namespace

UpstreamConnection::UpstreamConnection(const Context& context, Owner& owner)
    : context_(context), owner_(owner), parser_({context.limits.max_head_bytes, 100}) {}

UpstreamConnection::~UpstreamConnection() { shut(); }

void UpstreamConnection::shut() {
  context_.loop.unwatch(fd_.get());
  fd_.reset();
  whole_.release();
  slot_.release();
  if (buffer_) {
    context_.buffers.give_back(std::move(buffer_));
  }
}

Result<Ok> UpstreamConnection::adopt(os::UniqueFd fd, bool connected) {
  fd_ = std::move(fd);
  connected_ = connected;
  wants_writable_ = !connected;
  return context_.loop.watch(fd_.get(),
                             kReadEvents | (wants_writable_ ? std::uint32_t{EPOLLOUT} : 0U), *this);
}

void UpstreamConnection::want_writable(bool wanted) {
  if (wanted != wants_writable_) {
    wants_writable_ = wanted;
    context_.loop.change(fd_.get(), kReadEvents | (wanted ? std::uint32_t{EPOLLOUT} : 0U));
  }
}

void UpstreamConnection::start(Exchange& exchange, Bodies bodies) {
  exchange_ = &exchange;
  bodies_ = exchange.slot != nullptr ? bodies : Bodies::kSent;
  if (bodies_ != Bodies::kSent) {
    slot_ = exchange.slot->share();
  }
  exchange.connection = this;
  ticket_ = exchange.ticket;
  deadline_ = exchange.deadline;
  to_head_ = exchange.is_head_request;
  sent_ = 0;
  sent_all_ = send_broke_ = streaming_ = paused_ = false;
  state_ = connected_ ? State::kSending : State::kConnecting;
  if (connected_) {
    send_rest();
    if (send_broke_) {
      drive();
    }
  }
}

// The region's descriptor goes along with the first message about a slot.
ssize_t UpstreamConnection::send_parts(std::span<const iovec> parts) {
  if (bodies_ == Bodies::kInSlots && !knows_region_) {
    const ssize_t sent =
        os::send_with_descriptor(fd_.get(), parts, context_.bodies.sealed_region()->fd());
    knows_region_ = sent > 0;
    return sent;
  }
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());  // the call reads them only
  message.msg_iovlen = parts.size();
  return sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
}

void UpstreamConnection::send_rest() {
  const std::string_view head = slot_.valid() ? exchange_->slot_head : exchange_->head;
  const std::string_view body = slot_.valid() ? std::string_view{} : exchange_->body;
  while (sent_ < head.size() + body.size()) {
    std::array<iovec, 2> parts{};
    std::size_t count = 0;
    if (sent_ < head.size()) {
      parts[count++] = {const_cast<char*>(head.data()) + sent_, head.size() - sent_};
    }
    const std::size_t body_sent = sent_ > head.size() ? sent_ - head.size() : 0;
    if (body_sent < body.size()) {
      parts[count++] = {const_cast<char*>(body.data()) + body_sent, body.size() - body_sent};
    }
    const ssize_t written = send_parts(std::span(parts).first(count));
    if (written < 0 && errno == EAGAIN) {
      want_writable(true);
      return;
    }
    if (written < 0) {
      want_writable(false);
      send_broke_ = true;
      readable_ = true;
      state_ = State::kHead;
      return;
    }
    sent_ += static_cast<std::size_t>(written);
  }
  want_writable(false);
  sent_all_ = true;
  state_ = State::kHead;
}

void UpstreamConnection::on_ready(std::uint32_t events) {
  if (unwanted_) {
    return;  // to be closed
  }
  if (state_ == State::kIdle) {
    owner_.idle_connection_lost(*this);  // closed, or talking out of turn
    return;
  }
  if (state_ == State::kConnecting && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
    if (os::connect_result(fd_.get()) != 0) {
      fail(Failure::kNotConnected);
      return;
    }
    connected_ = true;
    state_ = State::kSending;
  }
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    readable_ = true;
    peer_closed_ |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
  }
  if (state_ == State::kSending) {
    send_rest();
  }
  drive();
}

void UpstreamConnection::drive() {
  if (state_ == State::kConnecting || state_ == State::kIdle) {
    return;
  }
  Step step = Step::kAgain;
  while (step == Step::kAgain && !paused_) {
    step = read_some();
  }
}

UpstreamConnection::Step UpstreamConnection::read_some() {
  if (!readable_) {
    return Step::kWait;
  }
  if (!buffer_) {
    buffer_ = context_.buffers.take();
    begin_ = end_ = 0;
  }
  const bool direct = state_ == State::kWholeBody && whole_.valid();
  char* const to = direct ? whole_.data() + whole_bytes_ : buffer_.get() + end_;
  const std::size_t room = direct ? body_left_ : context_.buffers.buffer_bytes() - end_;
  const ssize_t got = recv(fd_.get(), to, room, 0);
  if (got < 0 && errno == EAGAIN) {
    readable_ = false;
    return Step::kWait;
  }
  if (got <= 0) {
    at_end_ = true;
    const bool ends_body =
        got == 0 && state_ == State::kStreamed && head_.framing == BodyFraming::kUntilClose;
    const bool stale = send_broke_ && sent_ == 0;
    return ends_body ? finish()
                     : fail(stale ? Failure::kStaleConnection : Failure::kConnectionLost);
  }
  const auto bytes = static_cast<std::size_t>(got);
  // A short read has emptied the socket and more will raise an event; the end behind it will not.
  readable_ = bytes == room || peer_closed_;
  if (direct) {
    whole_bytes_ += bytes;
    body_left_ -= bytes;
    return body_left_ == 0 ? finish() : Step::kAgain;
  }
  end_ += bytes;
  if (state_ == State::kHead || state_ == State::kSending) {
    return parse_head();
  }
  return state_ == State::kWholeBody ? take_whole(buffered()) : take_streamed(buffered());
}

UpstreamConnection::Step UpstreamConnection::parse_head() {
  if (!in_head_ && !to_head_ && known_.begins(buffered())) {
    begin_ += known_.size();
    return begin_body();
  }
  for (;;) {
    const HeadResult result = parser_.parse_response(buffered(), head_, to_head_);
    in_head_ = result.state == HeadResult::State::kIncomplete;
    if (result.state == HeadResult::State::kIncomplete) {
      return end_ == context_.buffers.buffer_bytes() ? fail(Failure::kBadReply) : Step::kAgain;
    }
    if (result.state == HeadResult::State::kRefused || head_.status == 101) {
      return fail(Failure::kBadReply);
    }
    if (head_.status >= 200) {
      keep_head(result.head_bytes);
      break;
    }
    begin_ += result.head_bytes;
    known_.forget();
    // An interim reply is ours alone: the whole request was announced by its length.
    if (begin_ == end_) {
      begin_ = end_ = 0;
      return Step::kAgain;
    }
  }
  return begin_body();
}

// A replica that reads slots says so in every reply to one. Another that took the place of one that
// did says nothing: then the request is sent again, whole.
bool UpstreamConnection::accepts_slot() {
  const auto answer = head_.find(inference::kSlotsField);
  if (answer != inference::kSlotsVersion) {
    answer ? fail(Failure::kBadReply) : ignored_slot();
    return false;
  }
  return true;
}

// An error that names the region is about what the proxy did, not the client.
bool UpstreamConnection::denies_region() const {
  return bodies_ == Bodies::kInNamedRegion && head_.status >= 400 &&
         body_view_.find(kRegionPrefix) != std::string_view::npos;
}

UpstreamConnection::Step UpstreamConnection::ignored_slot() {
  owner_.slot_ignored(*this);
  return fail(Failure::kStaleConnection);
}

// The answer to HEAD is framed in a way of its own, so the next like it may mean something else.
void UpstreamConnection::keep_head(std::size_t bytes) {
  if (to_head_) {
    known_.forget();
  } else {
    known_.keep(buffered().substr(0, bytes), head_);
  }
  begin_ += bytes;
  plain_head_.clear();
  append_reply_head(plain_head_, head_, 1, ClientConnectionEnds::kNo);
}

UpstreamConnection::Step UpstreamConnection::begin_body() {
  if (bodies_ == Bodies::kInSlots && !accepts_slot()) {
    return Step::kDone;
  }
  body_left_ = head_.framing == BodyFraming::kLength ? head_.content_length : 0;
  whole_bytes_ = 0;
  const std::size_t room = context_.buffers.buffer_bytes() - begin_;
  const bool has_length =
      head_.framing == BodyFraming::kLength || head_.framing == BodyFraming::kNone;
  bool keep = has_length && body_left_ <= room;
  if (has_length && !keep && body_left_ <= context_.limits.kept_reply_bytes) {
    whole_ = context_.bodies.take(body_left_, BodyPool::For::kReply);
    keep = whole_.valid();
  }
  if (keep) {
    state_ = State::kWholeBody;
    return take_whole(buffered());
  }
  if (bodies_ == Bodies::kInNamedRegion && head_.status >= 400) {
    return ignored_slot();  // what the error says is not known before the client would have it
  }
  state_ = State::kStreamed;
  streaming_ = true;
  chunks_.reset();
  if (head_.framing == BodyFraming::kChunked) {
    chunks_.emplace();
  }
  if (exchange_ == nullptr) {
    return fail(Failure::kStaleConnection);  // nobody wants it, and it may never end
  }
  owner_.reply_streams(*this);
  exchange_->sink->on_reply_head(head_);
  return exchange_ == nullptr ? Step::kDone : take_streamed(buffered());
}

UpstreamConnection::Step UpstreamConnection::take_whole(std::string_view bytes) {
  if (!whole_.valid()) {  // it stays in the buffer
    if (bytes.size() < body_left_) {
      return Step::kAgain;
    }
    body_view_ = bytes.substr(0, body_left_);
    begin_ += body_view_.size();
    body_left_ = 0;
    return finish();
  }
  std::memcpy(whole_.data(), bytes.data(), bytes.size());
  whole_bytes_ = bytes.size();
  body_left_ -= bytes.size();
  begin_ = end_;
  return Step::kAgain;
}

UpstreamConnection::Step UpstreamConnection::take_streamed(std::string_view bytes) {
  bool done = head_.framing == BodyFraming::kLength && body_left_ == 0;
  while (!bytes.empty() && !done) {
    std::string_view data = bytes;
    std::string_view wire = bytes;
    if (chunks_) {
      const inference::ChunkedDecoder::Step step = chunks_->feed(bytes);
      if (step.bad) {
        return fail(Failure::kBadReply);
      }
      data = step.data;
      wire = bytes.substr(0, step.consumed);
      done = step.done;
    } else if (head_.framing == BodyFraming::kLength) {
      data = wire = bytes.substr(0, body_left_);
      body_left_ -= data.size();
      done = body_left_ == 0;
    }
    begin_ += wire.size();
    bytes.remove_prefix(wire.size());
    paused_ |= exchange_->sink->on_reply_data(data, wire) == ReplySink::Flow::kPause;
    if (exchange_ == nullptr) {
      return Step::kDone;  // abandoned while the client was written to
    }
  }
  if (done) {
    return finish();
  }
  begin_ = end_ = 0;
  return Step::kAgain;
}

UpstreamConnection::Step UpstreamConnection::finish() {
  if (whole_.valid()) {
    body_view_ = {whole_.data(), whole_bytes_};
  }
  if (!streaming_ && denies_region()) {
    return ignored_slot();
  }
  owner_.reply_complete(*this);
  return Step::kDone;
}

UpstreamConnection::Step UpstreamConnection::fail(Failure failure) {
  owner_.reply_failed(*this, failure);
  return Step::kDone;
}

bool UpstreamConnection::abandon() {
  const bool sent = sent_all_ && !streaming_;
  if (exchange_->connection == this) {
    exchange_->connection = nullptr;
  }
  exchange_ = nullptr;
  unwanted_ = !sent;
  return sent;
}

bool UpstreamConnection::outlast(Instant deadline) {
  if ((exchange_ == nullptr && !ticket_) || !slot_.valid() || !sent_all_ || streaming_) {
    return false;
  }
  exchange_ = nullptr;
  ticket_.reset();
  deadline_ = deadline;
  return true;
}

void UpstreamConnection::resume() {
  if (paused_) {
    paused_ = false;
    drive();
  }
}

bool UpstreamConnection::release() {
  const bool clean = begin_ == end_ && !at_end_ && head_.keep_alive && sent_all_ &&
                     head_.framing != BodyFraming::kUntilClose;
  whole_.release();
  slot_.release();
  context_.buffers.give_back(std::move(buffer_));
  begin_ = end_ = 0;
  exchange_ = nullptr;
  ticket_.reset();
  state_ = State::kIdle;
  return clean;
}

}  // namespace septet::balance
