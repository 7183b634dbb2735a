#include "balance/edge/grpc_upstream.h"

#include <algorithm>
#include <utility>

#include "balance/edge/reactor.h"
#include "balance/edge/replica.h"
#include "os/endpoint.h"

namespace septet::balance {

GrpcUpstreamStream::GrpcUpstreamStream(GrpcUpstreamConnection& connection, GrpcCall& call)
    : connection_(connection), call_(&call), deadline_(call.deadline) {}

void GrpcUpstreamStream::cancel() {
  call_->upstream = nullptr;
  call_ = nullptr;
  connection_.session_.codec().reset(id_, Http2Error::kCancel);
  connection_.flush_later();
}

bool GrpcUpstreamStream::discard(Ticket ticket) {
  if (!request_ended_) {
    cancel();
    return false;
  }
  call_->upstream = nullptr;
  call_ = nullptr;
  discarded_ = ticket;
  return true;
}

void GrpcUpstreamStream::hand_over(GrpcCall& call) {
  call_->upstream = nullptr;
  call_ = &call;
  call.upstream = this;
}

void GrpcUpstreamStream::consume(std::size_t bytes) {
  connection_.session_.codec().consume_stream(id_, bytes);
  connection_.flush_later();
}

void GrpcUpstreamStream::more() {
  connection_.session_.codec().more(id_);
  connection_.flush_later();
}

bool GrpcUpstreamStream::on_field(std::string_view name, std::string_view value) {
  fields_.add(name, value);
  return fields_.bytes() <= connection_.reactor_.options().max_head_bytes;
}

void GrpcUpstreamStream::on_fields_end() {
  const bool interim = !has_head_ && fields_.find(":status").starts_with('1');
  if (call_ != nullptr && !interim) {
    if (has_head_) {
      call_->on_reply_trailers(fields_);
    } else {
      has_head_ = true;
      call_->on_reply_head(fields_);
    }
  }
  fields_.clear();
}

void GrpcUpstreamStream::on_data(std::string_view bytes) {
  connection_.session_.codec().consume_connection(bytes.size());
  if (call_ != nullptr) {
    call_->on_reply_data(bytes);
  } else if (discarded_) {
    consume(bytes.size());
  }
}

void GrpcUpstreamStream::on_end() {
  if (!request_ended_) {  // answered before it was all read; the rest is not wanted
    connection_.session_.codec().reset(id_, Http2Error::kCancel);
    connection_.flush_later();
  }
  if (GrpcCall* const call = std::exchange(call_, nullptr)) {
    call->upstream = nullptr;
    call->on_reply_end();
  } else if (const auto ticket = std::exchange(discarded_, std::nullopt)) {
    connection_.reactor_.dispatcher().completed(connection_.reactor_.now(), *ticket);
  }
}

void GrpcUpstreamStream::on_closed(Http2Error error) {
  // A call that the replica refused without looking at it says nothing about the replica.
  lose(error == Http2Error::kRefusedStream ? Failure::kStaleConnection : Failure::kBadReply);
  connection_.streams_.erase(id_);
}

void GrpcUpstreamStream::lose(Failure failure) {
  if (GrpcCall* const call = std::exchange(call_, nullptr)) {
    call->upstream = nullptr;
    call->on_lost(connection_.owner_.replica(), failure);
  } else if (const auto ticket = std::exchange(discarded_, std::nullopt)) {
    static_cast<void>(
        connection_.reactor_.dispatcher().failed(connection_.reactor_.now(), *ticket, failure));
  }
}

Http2Stream::Supply GrpcUpstreamStream::supply(char* to, std::size_t room) {
  if (call_ == nullptr) {
    return {0, Supply::Then::kLater};
  }
  const Supply supply = call_->supply_request(to, room);
  request_ended_ = supply.then == Supply::Then::kEnd;
  return supply;
}

GrpcUpstreamConnection::GrpcUpstreamConnection(Reactor& reactor, GrpcUpstream& owner)
    : reactor_(reactor),
      owner_(owner),
      session_(reactor.loop(), *this, Http2Codec::Role::kClient,
               {.max_head_bytes = reactor.options().max_head_bytes,
                .stream_window = 256 * 1024,
                .connection_window = 1 << 24}) {}

Result<Ok> GrpcUpstreamConnection::adopt(os::UniqueFd fd, bool connected) {
  return session_.adopt(std::move(fd), connected ? Http2Session::Socket::kConnected
                                                 : Http2Session::Socket::kConnecting);
}

bool GrpcUpstreamConnection::takes_calls() const {
  return session_.open() && session_.codec().takes_requests();
}

void GrpcUpstreamConnection::flush_later() { reactor_.flush_later(session_); }

void GrpcUpstreamConnection::start(GrpcCall& call) {
  auto stream = std::make_unique<GrpcUpstreamStream>(*this, call);
  stream->id_ = session_.codec().submit_request(call.request(), *stream);
  if (stream->id_ == 0) {
    call.on_lost(owner_.replica(), Failure::kStaleConnection);
    return;
  }
  call.upstream = stream.get();
  streams_.emplace(stream->id_, std::move(stream));
  flush_later();
}

void GrpcUpstreamConnection::check_time(Instant now) {
  std::vector<GrpcUpstreamStream*> late;
  for (const auto& [id, stream] : streams_) {
    if (stream->waited_for() && stream->deadline_ <= now) {
      late.push_back(stream.get());
    }
  }
  for (GrpcUpstreamStream* const stream : late) {
    session_.codec().reset(stream->id_, Http2Error::kCancel);
    stream->lose(Failure::kTimedOut);
    flush_later();
  }
}

// A client is not pushed to.
Http2Stream* GrpcUpstreamConnection::on_stream_opened(StreamId /*stream*/) { return nullptr; }

bool GrpcUpstreamConnection::on_frame(Http2Frame /*frame*/, std::size_t /*bytes*/) { return true; }

void GrpcUpstreamConnection::on_round_end() { reactor_.pump(); }

void GrpcUpstreamConnection::on_connection_closed() {
  const Failure failure = session_.connected() ? Failure::kConnectionLost : Failure::kNotConnected;
  // Taken out first: who is told may start calls anew.
  auto streams = std::move(streams_);
  streams_.clear();
  for (const auto& [id, stream] : streams) {
    stream->lose(failure);
  }
}

GrpcUpstream::GrpcUpstream(Reactor& reactor, Replica& replica, os::Endpoint endpoint)
    : reactor_(reactor), replica_(replica), endpoint_(std::move(endpoint)) {}

GrpcUpstream::~GrpcUpstream() = default;

void GrpcUpstream::start(GrpcCall& call) {
  for (const std::unique_ptr<GrpcUpstreamConnection>& connection : connections_) {
    if (connection->takes_calls()) {
      connection->start(call);
      return;
    }
  }
  Result<os::UniqueFd> fd = os::start_connect(endpoint_);
  auto connection = std::make_unique<GrpcUpstreamConnection>(reactor_, *this);
  if (!fd.ok() || !connection->adopt(std::move(*fd), endpoint_.is_unix()).ok()) {
    call.on_lost(replica_, Failure::kNotConnected);
    return;
  }
  connections_.push_back(std::move(connection));
  connections_.back()->start(call);
}

bool GrpcUpstream::quiet() const {
  return std::all_of(connections_.begin(), connections_.end(),
                     [](const auto& connection) { return connection->quiet(); });
}

void GrpcUpstream::check_time(Instant now) {
  for (std::size_t i = connections_.size(); i-- > 0;) {
    connections_[i]->check_time(now);
    if (!connections_[i]->takes_calls() && connections_[i]->quiet()) {
      reactor_.flush_sessions();  // none may be left that still waits for it
      connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

}  // namespace septet::balance
