#include "balance/edge/http_stream.h"

#include <algorithm>

#include "balance/edge/http2_connection.h"
#include "balance/edge/reactor.h"
#include "balance/http2_head.h"

namespace septet::balance {

using inference::BodyFraming;

namespace {

// A streamed reply waits for the client when so much of it is unsent, two reads of the replica's.
constexpr std::size_t kPauseBytes = 64 * 1024;

bool means_a_body(std::string_view method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

}  // namespace

HttpStream::HttpStream(Reactor& reactor, Http2Connection& connection, StreamId id, Head head)
    : reactor_(reactor),
      connection_(connection),
      id_(id),
      since_(reactor.now()),
      fields_(std::move(head)),
      request_(reactor, *this) {}

bool HttpStream::has_length() const { return request_.head().framing == BodyFraming::kLength; }

void HttpStream::begin() {
  switch (fields_.state) {
    case Head::State::kTooLarge:
      request_.refuse(431, "the header is larger than " +
                               std::to_string(reactor_.options().max_head_bytes) +
                               " bytes, or has more than 100 fields");
      return;
    case Head::State::kMalformed:
      request_.refuse(400, "a field's name or value is malformed");
      return;
    case Head::State::kGood:
      break;
  }
  inference::HttpHead& head = request_.head();
  if (const auto reason = read_http2_head(fields_.fields, cookies_, head)) {
    refuse(400, *reason);
    return;
  }
  request_.head_read();
  if (const auto refusal = request_.refusal()) {
    refuse(refusal->status, refusal->message);
    return;
  }
  if (head.expect_continue) {
    FieldList fields;
    fields.add(":status", "100");
    connection_.codec().submit_interim(id_, fields);
  }
  if (has_length() && head.content_length > 0) {
    place_body();
  }
}

void HttpStream::refuse(unsigned status, std::string_view message) {
  early_.release();
  request_.refuse(status, message);
}

// Memory for a body whose length is known, and its window.
void HttpStream::place_body() {
  const std::uint64_t bytes = request_.head().content_length;
  switch (request_.take_memory(bytes)) {
    case HttpRequest::Memory::kTaken:
      break;
    case HttpRequest::Memory::kLater:
      state_ = State::kMemory;
      connection_.wait_for_memory(id_);
      return;
    case HttpRequest::Memory::kNever:
      refuse(503, "the proxy's memory limit is smaller than this request");
      return;
  }
  state_ = State::kBody;
  if (bytes > kFirstWindow) {
    connection_.codec().open_window(id_, std::min<std::size_t>(bytes, kMaxWindow));
  }
  connection_.flush_later();
}

void HttpStream::memory_freed() {
  if (state_ != State::kMemory) {
    return;
  }
  since_ = reactor_.now();
  place_body();
  if (state_ == State::kBody) {
    const ByteQueue early = std::move(early_);
    early_.release();
    take_body(early.all());
    if (client_ended_ && state_ == State::kBody) {
      submit();
    }
  }
}

void HttpStream::on_data(std::string_view bytes) {
  connection_.codec().consume_connection(bytes.size());
  if (state_ == State::kBody) {
    since_ = reactor_.now();
    take_body(bytes);
  } else if (state_ == State::kMemory &&
             !early_.append(reactor_.bodies(), bytes, BodyPool::For::kBeginning)) {
    refuse(503, "the proxy's memory is full; try again");
  }
  // Answered already: its window stays shut.
}

void HttpStream::take_body(std::string_view bytes) {
  if (bytes.empty()) {
    return;
  }
  if (!has_length()) {
    if (const auto refusal = request_.grow(bytes.size())) {
      refuse(refusal->status, refusal->message);
      return;
    }
  } else if (request_.body_bytes() + bytes.size() > request_.head().content_length) {
    refuse(400, "the body is longer than its content-length");
    return;
  }
  request_.append(bytes);
  connection_.codec().consume_stream(id_, bytes.size());
}

void HttpStream::on_end() {
  client_ended_ = true;
  if (state_ == State::kBody) {
    submit();
  }
}

// The request is here, whole.
void HttpStream::submit() {
  inference::HttpHead& head = request_.head();
  if (has_length() && request_.body_bytes() < head.content_length) {
    refuse(400, "the body is shorter than its content-length");
    return;
  }
  if (!has_length() && request_.body_bytes() == 0 && !means_a_body(head.method)) {
    head.framing = BodyFraming::kNone;
  }
  state_ = State::kWaiting;
  request_.submit();
}

void HttpStream::write_own(const OwnReply& reply) {
  FieldList fields;
  append_own_fields(fields, reply);
  write_all(fields, reply.to_head ? std::string_view{} : reply.body);
}

void HttpStream::write_whole(const WholeReply& reply) {
  FieldList fields;
  append_reply_fields(fields, reply.head);
  write_all(fields, reply.body);
}

void HttpStream::write_all(const FieldList& fields, std::string_view body) {
  if (!reply_.append(reactor_.bodies(), body, BodyPool::For::kReply)) {
    write_cut();  // not even an error's text has room
    return;
  }
  reply_ended_ = true;
  state_ = body.empty() ? State::kDone : State::kReplying;
  since_ = reactor_.now();
  connection_.codec().submit_response(
      id_, fields, body.empty() ? Http2Codec::Body::kNone : Http2Codec::Body::kFollows);
  connection_.flush_later();
  request_.clear();
  if (body.empty()) {
    connection_.call_ended();
  }
}

void HttpStream::write_head(const inference::HttpHead& head) {
  FieldList fields;
  append_reply_fields(fields, head);
  state_ = State::kReplying;
  since_ = reactor_.now();
  connection_.codec().submit_response(id_, fields, Http2Codec::Body::kFollows);
  connection_.flush_later();
}

ReplySink::Flow HttpStream::write_data(std::string_view data, std::string_view /*wire*/) {
  if (reply_.size() >= 2 * reply_.left()) {
    reply_.drop_read();
  }
  if (!reply_.append(reactor_.bodies(), data, BodyPool::For::kReply)) {
    write_cut();
    return ReplySink::Flow::kGoOn;
  }
  connection_.codec().more(id_);
  connection_.flush_later();
  paused_ = reply_.left() > kPauseBytes;
  return paused_ ? ReplySink::Flow::kPause : ReplySink::Flow::kGoOn;
}

void HttpStream::write_end() {
  reply_ended_ = true;
  connection_.codec().more(id_);
  connection_.flush_later();
}

void HttpStream::write_cut() {
  state_ = State::kDone;
  connection_.codec().reset(id_, Http2Error::kInternal);
  connection_.flush_later();
  request_.abandon();
  reply_.release();
}

Http2Stream::Supply HttpStream::supply(char* to, std::size_t room) {
  using Then = Supply::Then;
  const std::size_t bytes = reply_.read(to, room);
  connection_.data_sent(bytes);
  since_ = reactor_.now();
  if (paused_ && reply_.left() <= kPauseBytes / 2) {
    paused_ = false;
    connection_.wait_to_go_on(id_);
  }
  if (reply_.left() > 0) {
    return {bytes, Then::kMore};
  }
  if (!reply_ended_) {
    return {bytes, Then::kLater};
  }
  state_ = State::kDone;
  connection_.call_ended();
  return {bytes, Then::kEnd};
}

void HttpStream::check_time(Instant now) {
  const ProxyOptions& options = reactor_.options();
  const Duration waited = now - since_;
  switch (state_) {
    case State::kBody:
      if (waited > options.body_timeout) {
        refuse(408, "the request's body took too long");
      }
      break;
    case State::kMemory:
      if (waited > options.request_timeout) {
        refuse(503, "the proxy has no memory left for this request; try again");
      }
      break;
    case State::kReplying:
      if (reply_.left() > 0 && waited > options.body_timeout) {
        write_cut();
      }
      break;
    case State::kWaiting:  // the dispatcher's and the replica's deadline
    case State::kDone:
      break;
  }
}

// The client or its connection is gone, or the reply is complete.
void HttpStream::on_closed(Http2Error /*error*/) {
  request_.abandon();
  connection_.forget(id_);
}

}  // namespace septet::balance
