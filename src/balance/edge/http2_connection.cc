#include "balance/edge/http2_connection.h"

#include "balance/edge/grpc_stream.h"
#include "balance/edge/http_stream.h"
#include "balance/edge/reactor.h"

namespace septet::balance {

namespace {

constexpr std::uint32_t kMaxStreams = 128;
constexpr std::size_t kMaxFields = 100;
// A head that is larger than allowed is refused with a reply; one that is larger still is reset.
constexpr std::size_t kResetFactor = 2;

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
  opening_.open(id);
  return &opening_;
}

void Http2Connection::Opening::open(StreamId id) {
  id_ = id;
  head_.fields.clear();
  head_.state = ClientStream::Head::State::kGood;
  bytes_ = fields_ = 0;
}

bool Http2Connection::Opening::on_field(std::string_view name, std::string_view value) {
  const std::size_t limit = connection_.reactor_.options().max_head_bytes;
  bytes_ += name.size() + value.size();
  ++fields_;
  if (bytes_ <= limit && fields_ <= kMaxFields) {
    head_.fields.add(name, value);
    return true;
  }
  head_.state = ClientStream::Head::State::kTooLarge;
  const bool hopeless = bytes_ > kResetFactor * limit || fields_ > kResetFactor * kMaxFields;
  id_ = hopeless ? 0 : id_;
  return !hopeless;
}

void Http2Connection::Opening::on_bad_field() {
  head_.state = ClientStream::Head::State::kMalformed;
}

void Http2Connection::Opening::on_fields_end() {
  if (const StreamId id = std::exchange(id_, 0); id != 0) {
    connection_.begin_stream(id, std::move(head_));
  }
}

void Http2Connection::Opening::on_data(std::string_view bytes) {
  connection_.codec().consume_connection(bytes.size());
}

void Http2Connection::begin_stream(StreamId id, ClientStream::Head head) {
  // Fields that are none are left out of a call, as gRPC's own servers do.
  const bool is_call = head.state != ClientStream::Head::State::kTooLarge && is_grpc(head.fields);
  std::unique_ptr<ClientStream> stream;
  if (is_call) {
    stream = std::make_unique<GrpcStream>(reactor_, *this, id, std::move(head.fields));
  } else {
    stream = std::make_unique<HttpStream>(reactor_, *this, id, std::move(head));
  }
  ClientStream& made = *stream;
  streams_.emplace(id, std::move(stream));
  codec().hand_over(id, made);
  made.begin();
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

// What goes on may end other streams, and wait again.
void Http2Connection::on_flushed() {
  std::vector<StreamId> waiting;
  waiting.swap(to_go_on_);
  for (const StreamId id : waiting) {
    if (const auto found = streams_.find(id); found != streams_.end()) {
      found->second->go_on();
    }
  }
}

void Http2Connection::wait_for_memory(StreamId stream) {
  if (waiting_for_memory_.empty()) {
    reactor_.wait_for_memory(*this);
  }
  waiting_for_memory_.push_back(stream);
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
