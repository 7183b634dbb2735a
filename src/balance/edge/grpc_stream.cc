#include "balance/edge/grpc_stream.h"

#include <algorithm>

#include "balance/edge/grpc_upstream.h"
#include "balance/edge/http2_connection.h"
#include "balance/edge/reactor.h"
#include "balance/edge/slot_request.h"
#include "balance/request_nature.h"
#include "inference/slot_call.h"

namespace septet::balance {

namespace {

constexpr std::size_t kSmallestInSlot = 64 * 1024;
// So much of a stream's first message says of what sequence it is.
constexpr std::uint64_t kSequencePeek = 4096;

}  // namespace

GrpcStream::GrpcStream(Reactor& reactor, Http2Connection& connection, StreamId id, FieldList head)
    : reactor_(reactor),
      connection_(connection),
      id_(id),
      since_(reactor.now()),
      head_(std::move(head)) {}

GrpcStream::~GrpcStream() { let_go(); }

void GrpcStream::begin() {
  reactor_.count_request();
  kind_ = find_grpc_kind(head_.find(":path"));
  deadline = is_stream() ? Instant::max() : reactor_.now() + reactor_.options().request_timeout;
  read_wishes();
  // The first message of a stream of inferences may be of a sequence, whose replica it goes to.
  if (is_stream() && !head_.find(":path").ends_with("/ModelStreamInfer")) {
    begin_stream();
  }
}

void GrpcStream::read_wishes() {
  head_.each([this](const FieldList::Field& field) {
    wishes_.read_field(field.name, field.value);
    if (field.name == "grpc-timeout") {
      wishes_.timeout = parse_grpc_timeout(field.value).value_or(wishes_.timeout);
    }
  });
  if (wishes_.has_deadline()) {
    deadline = std::min(deadline, reactor_.now() + wishes_.timeout);
  }
}

// The client's fields without those that belong to its connection; time is what is left of it.
void GrpcStream::build_request() {
  request_.clear();
  head_.each([this](const FieldList::Field& field) {
    if (field.name != "grpc-timeout" && field.name != "content-length") {
      request_.add(field.name, field.value);
    }
  });
  if (wishes_.has_deadline()) {
    request_.add("grpc-timeout", grpc_timeout_text(deadline - reactor_.now()));
  }
}

void GrpcStream::begin_stream() {
  Replica* const replica = reactor_.pin(*this, read_proto_sequence(body_.all()));
  if (replica == nullptr) {
    fail(GrpcStatus::kUnavailable, reactor_.speaks_grpc()
                                       ? "no replica is ready; try again later"
                                       : "no replica behind this address has a gRPC address");
    return;
  }
  pinned_ = replica->index();
  state_ = State::kWaiting;
  build_request();
  replica->send(*this);
}

void GrpcStream::on_data(std::string_view bytes) {
  connection_.codec().consume_connection(bytes.size());
  if (reply_ended_ || (committed_ && !is_stream())) {
    return;  // answered already; its window stays shut
  }
  since_ = reactor_.now();
  unconsumed_ += bytes.size();
  if (!is_stream()) {
    take_unary(bytes);
    return;
  }
  body_.drop_read();
  if (!body_.append(reactor_.bodies(), bytes, BodyPool::For::kBeginning)) {
    fail(GrpcStatus::kResourceExhausted, "the proxy's memory is full; try again later");
  } else if (state_ == State::kBody) {
    const std::optional<std::uint64_t> size = framed_size(body_.all());
    if (size && body_.size() >= std::min(*size, kSequencePeek)) {
      begin_stream();
    }
  } else if (upstream != nullptr) {
    upstream->more();
  }
}

void GrpcStream::take_unary(std::string_view bytes) {
  const std::size_t limit = reactor_.options().max_body_bytes;
  const std::optional<std::uint64_t> announced =
      body_.size() == 0 ? framed_size(bytes) : framed_size(body_.all());
  const std::uint64_t size =
      std::max<std::uint64_t>(announced.value_or(0), body_.size() + bytes.size());
  if (size > limit) {
    fail(GrpcStatus::kResourceExhausted, "request message of " + std::to_string(size) +
                                             " bytes is larger than the limit of " +
                                             std::to_string(limit) + " bytes");
    return;
  }
  if (state_ == State::kBody && announced) {
    place(*announced, bytes);
  }
  if (!body_.append(reactor_.bodies(), bytes, BodyPool::For::kBeginning)) {
    fail(GrpcStatus::kResourceExhausted, "the proxy's memory is full; try again later");
    return;
  }
  if (state_ == State::kBody && !reserve()) {
    state_ = State::kMemory;
    connection_.wait_for_memory(id_);
  }
}

// Memory for a message whose length is known: found at once, it is copied only once. In a slot, if
// the message's bytes have just begun and most of it is tensors: then they are aligned. Where calls
// may be hedged they stay out of slots: a second copy is sent over HTTP/2 only.
void GrpcStream::place(std::uint64_t announced, std::string_view beginning) {
  const bool for_slot = body_.size() == 0 && kind_ == GrpcKind::kInfer && beginning.front() == 0 &&
                        announced >= kSmallestInSlot && reactor_.slot_calls_in_use() &&
                        !reactor_.hedges();
  const auto tensor_at = for_slot ? inference::first_tensor_at(beginning) : std::nullopt;
  if (tensor_at) {
    body_.reserve_slot(reactor_.bodies(), announced, lead_for(*tensor_at));
  }
  static_cast<void>(body_.reserve(reactor_.bodies(), announced, BodyPool::For::kRequest));
}

// Memory for the whole message, and its window; false when there is none now.
bool GrpcStream::reserve() {
  const std::uint64_t announced = framed_size(body_.all()).value_or(0);
  if (!reactor_.bodies().fits(announced)) {
    fail(GrpcStatus::kResourceExhausted, "the proxy's memory limit is smaller than this request");
    return true;
  }
  if (!body_.reserve(reactor_.bodies(), announced, BodyPool::For::kRequest)) {
    return false;
  }
  if (announced > kFirstWindow && body_.size() <= kFirstWindow) {
    connection_.codec().open_window(id_, std::min<std::size_t>(announced, kMaxWindow));
  }
  connection_.codec().consume_stream(id_, unconsumed_);
  unconsumed_ = 0;
  connection_.flush_later();
  return true;
}

void GrpcStream::memory_freed() {
  if (state_ != State::kMemory) {
    return;
  }
  if (!reserve()) {
    connection_.wait_for_memory(id_);
  } else if (state_ == State::kMemory) {
    state_ = State::kBody;
    since_ = reactor_.now();
    if (client_ended_) {
      dispatch();
    }
  }
}

void GrpcStream::on_end() {
  client_ended_ = true;
  if (is_stream() && state_ == State::kBody) {
    begin_stream();
  } else if (is_stream()) {
    if (upstream != nullptr) {
      upstream->more();
    }
  } else if (state_ == State::kBody) {
    dispatch();
  }
}

// A single request is here, whole.
void GrpcStream::dispatch() {
  state_ = State::kWaiting;
  switch (kind_) {
    case GrpcKind::kInfer:
      model_ = peek_model(body_.all());
      queue();
      return;
    case GrpcKind::kLive:
      answer(truth_reply(true));
      return;
    case GrpcKind::kReady:
      answer(truth_reply(reactor_.dispatcher().any_up()));
      return;
    case GrpcKind::kHealthCheck:
      answer(health_reply(reactor_.dispatcher().any_up()));
      return;
    case GrpcKind::kAnyReplica:
    case GrpcKind::kEveryReplica:
    case GrpcKind::kStatistics:
    case GrpcKind::kRepositoryIndex:
      start_fan_out();
      return;
    case GrpcKind::kNotServed:
    case GrpcKind::kStream:
      fail(GrpcStatus::kUnimplemented, "this method is not served here");
      return;
  }
}

void GrpcStream::queue() {
  if (!reactor_.speaks_grpc()) {
    fail(GrpcStatus::kUnavailable, "no replica behind this address has a gRPC address");
    return;
  }
  Reactor::Submission about{Reactor::Protocol::kGrpc, model_, body_.size(), wishes_,
                            read_proto_sequence(body_.all())};
  may_be_hedged =
      reactor_.hedges() && about.sequence.id.empty() && !proto_names_shared_memory(body_.all());
  reactor_.submit(*this, about);
}

void GrpcStream::requeue() {
  const bool at_replica = upstream != nullptr || (slot_call_ && slot_call_->in_flight());
  if (ticket && !at_replica && !committed_) {
    static_cast<void>(reactor_.dispatcher().cancel(*ticket));
    ticket.reset();
    queue();
  }
}

// Statistics and the index are asked for over HTTP, where all that is merged comes together.
void GrpcStream::start_fan_out() {
  build_request();
  if (kind_ == GrpcKind::kAnyReplica || kind_ == GrpcKind::kEveryReplica) {
    call_fan_out_ = std::make_unique<GrpcFanOut>(
        reactor_, *this,
        kind_ == GrpcKind::kAnyReplica ? GrpcFanOut::Rule::kFirst : GrpcFanOut::Rule::kAll, *this,
        body_.all());
    call_fan_out_->start();
    return;
  }
  const bool statistics = kind_ == GrpcKind::kStatistics;
  std::optional<GrpcQuestion> question =
      statistics ? read_statistics_question(body_.all()) : read_index_question(body_.all());
  if (!question) {
    fail(GrpcStatus::kInternal, "the request message cannot be read");
    return;
  }
  question_ = *std::move(question);
  const Route route{statistics ? RouteKind::kStatistics : RouteKind::kRepositoryIndex,
                    question_.model, question_.version};
  fan_out_ = std::make_unique<FanOut>(
      reactor_, *this, route, FanOut::Question{question_.head, question_.body, false, deadline});
  fan_out_->start();
}

void GrpcStream::check_time(Instant now) {
  const ProxyOptions& options = reactor_.options();
  const Duration waited = now - since_;
  if (state_ == State::kDone) {
    return;
  }
  if (!is_stream() && state_ == State::kBody && waited > options.body_timeout) {
    fail(GrpcStatus::kDeadlineExceeded, "the request's message took too long");
  } else if (state_ == State::kMemory && waited > options.request_timeout) {
    fail(GrpcStatus::kResourceExhausted, "the proxy has no memory left for this request");
  } else if (pinned_ && reactor_.dispatcher().view(*pinned_).state == ReplicaState::kDraining &&
             waited > options.request_timeout) {
    fail(GrpcStatus::kUnavailable, "the replica is leaving; open the stream again");
  }
}

void GrpcStream::on_closed(Http2Error /*error*/) {
  let_go();
  connection_.forget(id_);
}

// The client or its connection is gone, or the reply is complete.
void GrpcStream::let_go() {
  state_ = State::kDone;
  if (slot_call_ && slot_call_->in_flight()) {
    slot_call_->abandon();
    ticket.reset();
  }
  const bool queued = ticket && reactor_.dispatcher().cancel(*ticket);
  if (upstream != nullptr) {
    upstream->cancel();
  }
  drop_second();
  if (ticket && !queued) {
    // It was told to stop, which says nothing about it, and nobody wants it again.
    static_cast<void>(
        reactor_.dispatcher().failed(reactor_.now(), *ticket, Failure::kStaleConnection));
  }
  ticket.reset();
  unpin();
  fan_out_.reset();
  call_fan_out_.reset();
  body_.release();
  reply_.release();
  reactor_.memory_released();
}

void GrpcStream::unpin() {
  if (pinned_) {
    reactor_.unpin(*pinned_);
    pinned_.reset();
  }
}

}  // namespace septet::balance
