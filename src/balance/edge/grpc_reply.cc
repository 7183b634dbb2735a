// The second half of GrpcStream: what comes from replicas, and the reply to the client.

#include "balance/edge/grpc_stream.h"
#include "balance/edge/grpc_upstream.h"
#include "balance/edge/http2_connection.h"
#include "balance/edge/reactor.h"
#include "base/text.h"

namespace septet::balance {

namespace {

// A call that replicas give back unread is not tried for ever.
constexpr int kMaxReturns = 3;

}  // namespace

void GrpcStream::go_to(Replica& replica) {
  body_.read_again();
  reply_.release();
  reply_head_.clear();
  trailers_.clear();
  hedge = Hedge::kNone;
  if (body_.memory().valid() && body_.memory().in_slot() && replica.takes_slot_calls()) {
    if (!slot_call_) {
      slot_call_ = std::make_unique<GrpcSlotCall>(reactor_, *this);
    }
    slot_call_->send(replica, {body_.memory(), body_.lead(), body_.all()}, *this);
    return;
  }
  build_request();
  replica.send(*this);
}

void GrpcStream::hedge_to(Replica& replica, Ticket copy) {
  hedge = Hedge::kSent;
  second_ = std::make_unique<GrpcHedge>(*this, *this, reactor_, copy);
  replica.send(*second_);
}

// The replica of the other copy works on, and keeps its place until it is done.
void GrpcStream::on_second_answers(GrpcHedge& second) {
  reactor_.dispatcher().prefer(reactor_.now(), *second.ticket);
  if (upstream != nullptr && !upstream->discard(*ticket)) {
    static_cast<void>(
        reactor_.dispatcher().failed(reactor_.now(), *ticket, Failure::kStaleConnection));
  }
  fall_back();
}

void GrpcStream::on_second_lost() {
  hedge = Hedge::kLost;
  second_.reset();
}

// The second copy, if there is one, becomes this stream's own call.
bool GrpcStream::fall_back() {
  if (!second_) {
    return false;
  }
  const std::unique_ptr<GrpcHedge> second = std::move(second_);
  hedge = Hedge::kWon;
  ticket = second->ticket;
  reply_.release();
  reply_head_ = second->reply_head();
  trailers_ = second->reply_trailers();
  body_.read_from(second->sent());
  if (second->upstream != nullptr) {
    second->upstream->hand_over(*this);
  }
  return true;
}

// The client is gone, or was answered by the first copy.
void GrpcStream::drop_second() {
  if (!second_) {
    return;
  }
  hedge = Hedge::kLost;
  const std::unique_ptr<GrpcHedge> second = std::move(second_);
  if (ticket) {
    reactor_.dispatcher().prefer(reactor_.now(), *ticket);
  }
  if (second->upstream == nullptr || !second->upstream->discard(*second->ticket)) {
    static_cast<void>(
        reactor_.dispatcher().failed(reactor_.now(), *second->ticket, Failure::kStaleConnection));
  }
}

// Replica and dispatcher have done with it.
void GrpcStream::on_slot_answer(std::string_view grpc_status, std::string_view body) {
  ticket.reset();
  if (grpc_status == "0") {
    reactor_.learn_model(Reactor::Protocol::kGrpc, model_);
    answer(body);
  } else if (!parse_uint(grpc_status)) {
    fail(GrpcStatus::kInternal, "a replica's reply is no answer to a call");
  } else {
    reply_head_.add(":status", "200");
    reply_head_.add("content-type", "application/grpc");
    reply_head_.add("grpc-status", grpc_status);
    reply_head_.add("grpc-message", grpc_message_text(body));
    end_reply();
  }
}

void GrpcStream::on_slot_call_lost(unsigned status, std::string_view message) {
  ticket.reset();
  fail(grpc_status_of_http(status), message);
}

void GrpcStream::on_refused(unsigned status, std::string_view message) {
  fail(grpc_status_of_http(status), message);
}

Http2Stream::Supply GrpcStream::supply_request(char* to, std::size_t room) {
  using Then = Supply::Then;
  const std::size_t bytes = body_.read(to, room);
  const bool empty = body_.left() == 0;
  if (!is_stream()) {
    return {bytes, empty ? Then::kEnd : Then::kMore};
  }
  if (bytes > 0) {
    const std::size_t counted = std::min(bytes, unconsumed_);
    unconsumed_ -= counted;
    connection_.codec().consume_stream(id_, counted);
    connection_.flush_later();
  }
  return {bytes, !empty ? Then::kMore : client_ended_ ? Then::kEnd : Then::kLater};
}

void GrpcStream::on_reply_head(const FieldList& fields) {
  reply_head_ = fields;
  if (is_stream() && fields.find("grpc-status").empty()) {
    commit();
  }
}

void GrpcStream::on_reply_data(std::string_view data) {
  if (second_) {  // this one was answered first
    drop_second();
  }
  if (committed_) {
    reply_.drop_read();
  }
  if (!reply_.append(reactor_.bodies(), data, BodyPool::For::kReply)) {
    upstream->cancel();
    if (ticket) {
      reactor_.forbid_repeat(*this);
      static_cast<void>(
          reactor_.dispatcher().failed(reactor_.now(), *ticket, Failure::kStaleConnection));
      ticket.reset();
    }
    fail(GrpcStatus::kResourceExhausted, "the proxy has no memory left for this reply");
    return;
  }
  if (!committed_ && reply_.size() <= reactor_.options().kept_reply_bytes) {
    upstream->consume(data.size());
    return;
  }
  reply_unconsumed_ += data.size();
  if (!committed_) {
    commit();
  }
  connection_.codec().more(id_);
  connection_.flush_later();
}

void GrpcStream::on_reply_trailers(const FieldList& fields) { trailers_ = fields; }

void GrpcStream::on_reply_end() {
  const std::string_view at_the_end = trailers_.find("grpc-status");
  if (second_ && at_the_end != "0") {  // an error ends nothing that may still be answered
    static_cast<void>(
        reactor_.dispatcher().failed(reactor_.now(), *ticket, Failure::kStaleConnection));
    fall_back();
    return;
  }
  drop_second();
  if (ticket) {
    reactor_.dispatcher().completed(reactor_.now(), *ticket);
    ticket.reset();
  }
  if (at_the_end == "0") {
    reactor_.learn_model(Reactor::Protocol::kGrpc, model_);
  }
  end_reply();
}

void GrpcStream::on_lost(Replica& replica, Failure failure) {
  if (failure == Failure::kStaleConnection && ++returns_ > kMaxReturns) {
    failure = Failure::kBadReply;
  }
  std::string_view lost;  // what went with it
  if (ticket) {
    if (reactor_.dispatcher().failed(reactor_.now(), *ticket, failure)) {
      return;  // queued again
    }
    if (fall_back()) {
      return;
    }
    ticket.reset();
    lost = reactor_.lose_sequence(*this, failure);
  } else if (pinned_) {
    if (failure != Failure::kStaleConnection) {
      reactor_.dispatcher().pinned_failed(reactor_.now(), replica.index(), failure);
    }
    unpin();
    lost = reactor_.lose_sequence(*this, failure);
    const bool unread = failure == Failure::kStaleConnection || failure == Failure::kNotConnected;
    if (unread && !committed_ && body_.size() == body_.left() && ++returns_ <= kMaxReturns) {
      begin_stream();
      return;
    }
  }
  fail(grpc_status_of_http(failure_status(failure)),
       "replica '" + replica.name() + "' " + failure_text(failure) + std::string(lost));
}

void GrpcStream::on_merged(const MergedReply& reply) {
  if (reply.status != 200) {
    fail(grpc_status_of_http(reply.status), error_text(reply.body));
    return;
  }
  const std::optional<std::string> protobuf =
      kind_ == GrpcKind::kStatistics ? statistics_reply(reply.body) : index_reply(reply.body);
  if (protobuf) {
    answer(*protobuf);
  } else {
    fail(GrpcStatus::kInternal, "the replicas' answers cannot be written as one");
  }
}

void GrpcStream::on_merged_call(const GrpcReply& reply) {
  if (!reply.whole) {
    fail(GrpcStatus::kUnavailable, "no replica is ready; try again later");
    return;
  }
  reply_head_ = reply.head;
  trailers_ = reply.trailers;
  if (!reply_.append(reactor_.bodies(), reply.data, BodyPool::For::kReply)) {
    fail(GrpcStatus::kResourceExhausted, "the proxy has no memory left for this reply");
    return;
  }
  end_reply();
}

// A reply of the proxy itself.
void GrpcStream::answer(std::string_view protobuf) {
  reply_head_.clear();
  reply_head_.add(":status", "200");
  reply_head_.add("content-type", "application/grpc");
  if (!reply_.append(reactor_.bodies(), framed_message(protobuf), BodyPool::For::kReply)) {
    fail(GrpcStatus::kResourceExhausted, "the proxy has no memory left for this reply");
    return;
  }
  trailers_.clear();
  trailers_.add("grpc-status", "0");
  end_reply();
}

void GrpcStream::fail(GrpcStatus status, std::string_view message) {
  if (state_ == State::kDone || reply_ended_) {
    return;
  }
  trailers_.clear();
  FieldList& last = committed_ ? trailers_ : reply_head_;
  if (!committed_) {
    reply_.release();
    last.clear();
    last.add(":status", "200");
    last.add("content-type", "application/grpc");
  }
  last.add("grpc-status", std::to_string(static_cast<unsigned>(status)));
  last.add("grpc-message", grpc_message_text(message));
  if (status == GrpcStatus::kUnavailable) {
    last.add("grpc-retry-pushback-ms", "1000");  // what Retry-After is to HTTP
  }
  if (upstream != nullptr) {
    upstream->cancel();
  }
  end_reply();
}

// Nothing more of the reply will come.
void GrpcStream::end_reply() {
  reply_ended_ = true;
  unpin();
  note_reply();
  if (!committed_) {
    commit();
  } else {
    connection_.codec().more(id_);
    connection_.flush_later();
  }
}

void GrpcStream::note_reply() {
  const std::string_view at_the_end = trailers_.find("grpc-status");
  const unsigned status =
      100 * http_class_of_grpc(at_the_end.empty() ? reply_head_.find("grpc-status") : at_the_end);
  reactor_.count_reply(status);
  if (reactor_.access_log().wants_next()) {
    reactor_.access_log().add({.protocol = "grpc",
                               .method = {},
                               .target = head_.find(":path"),
                               .status = status,
                               .took = reactor_.now() - since_,
                               .hedge = hedge_text(),
                               .request_id = head_.find("x-request-id"),
                               .traceparent = head_.find("traceparent")});
  }
}

// Begins the reply to the client: from here on the request cannot be sent again.
void GrpcStream::commit() {
  committed_ = true;
  reactor_.forbid_repeat(*this);
  const bool bare = reply_ended_ && reply_.left() == 0 && trailers_.empty();
  state_ = bare ? State::kDone : State::kReplying;
  since_ = reactor_.now();
  connection_.codec().submit_response(id_, reply_head_,
                                      bare ? Http2Codec::Body::kNone : Http2Codec::Body::kFollows);
  connection_.flush_later();
  if (bare) {
    connection_.call_ended();
  }
}

Http2Stream::Supply GrpcStream::supply(char* to, std::size_t room) {
  using Then = Supply::Then;
  const std::size_t bytes = reply_.read(to, room);
  connection_.data_sent(bytes);
  const std::size_t counted = std::min(bytes, reply_unconsumed_);
  if (upstream != nullptr && counted > 0) {
    upstream->consume(counted);
  }
  reply_unconsumed_ -= counted;
  if (reply_.left() > 0) {
    return {bytes, Then::kMore};
  }
  if (!reply_ended_) {
    return {bytes, Then::kLater};
  }
  state_ = State::kDone;
  since_ = reactor_.now();
  connection_.call_ended();
  if (trailers_.empty()) {
    return {bytes, Then::kEnd};
  }
  connection_.codec().submit_trailers(id_, trailers_);
  return {bytes, Then::kTrailers};
}

}  // namespace septet::balance
