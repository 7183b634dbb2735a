#include "balance/edge/http2_connection.h"

#include "balance/edge/reactor.h"

namespace septet::balance {

namespace {

constexpr std::uint32_t kMaxStreams = 128;

}  // namespace

Http2Connection::Http2Connection(Reactor& reactor)
    : reactor_(reactor),
      guard_(reactor.now()),
      session_(reactor.loop(), *this, Http2Codec::Role::kServer,
               {.max_streams = kMaxStreams, .max_head_bytes = reactor.options().max_head_bytes}),
      since_(reactor.now()) {}

Http2Connection::~Http2Connection() = default;

Result<Ok> Http2Connection::begin(os::UniqueFd fd, std::unique_ptr<inference::TlsStream> tls,
                                  std::string_view received) {
  SEPTET_TRY(session_.adopt(std::move(fd), Http2Session::Socket::kConnected, std::move(tls)));
  session_.received(received);
  return Ok{};
}

void Http2Connection::flush_later() { reactor_.flush_later(session_); }

Http2Stream* Http2Connection::on_stream_opened(StreamId id) {
  if (streams_.size() >= kMaxStreams) {
    return nullptr;
  }
  return streams_.emplace(id, std::make_unique<GrpcStream>(reactor_, *this, id))
      .first->second.get();
}

bool Http2Connection::on_frame(Http2Frame frame, std::size_t bytes) {
  return guard_.admit(reactor_.now(), frame, bytes);
}

void Http2Connection::data_sent(std::size_t bytes) {
  guard_.data_sent(bytes);
  since_ = reactor_.now();
}

void Http2Connection::forget(StreamId id) {
  streams_.erase(id);
  since_ = reactor_.now();
}

void Http2Connection::on_round_end() { reactor_.pump(); }

void Http2Connection::on_connection_closed() {
  streams_.clear();
  reactor_.memory_released();
  reactor_.retire(*this);
}

void Http2Connection::wait_for_memory(GrpcStream& stream) {
  if (waiting_for_memory_.empty()) {
    reactor_.wait_for_memory(*this);
  }
  waiting_for_memory_.push_back(stream.id());
}

void Http2Connection::memory_freed() {
  std::deque<StreamId> waiting;
  waiting.swap(waiting_for_memory_);
  for (const StreamId id : waiting) {
    if (const auto found = streams_.find(id); found != streams_.end()) {
      found->second->memory_freed();  // may wait again
    }
  }
}

void Http2Connection::requeue_calls() {
  for (const auto& [id, stream] : streams_) {
    stream->requeue();
  }
}

void Http2Connection::check_time(Instant now) {
  const ProxyOptions& options = reactor_.options();
  for (const auto& [id, stream] : streams_) {
    stream->check_time(now);
  }
  if (!session_.stuck() && !streams_.empty()) {
    since_ = now;
  }
  if (session_.stuck() ? now - since_ > options.body_timeout
                       : streams_.empty() && now - since_ > options.idle_timeout) {
    session_.codec().terminate(Http2Error::kNone);
    session_.flush();
    session_.close();
  }
}

}  // namespace septet::balance
