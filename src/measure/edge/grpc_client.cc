#include "measure/edge/grpc_client.h"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "measure/edge/server_access.h"
#include "os/clock.h"

namespace septet::measure {

namespace {

constexpr std::int32_t kWindowBytes = 16 * 1024 * 1024;
constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::size_t kKeptBytes = 64 * 1024 * 1024;
constexpr std::size_t kKeptErrorBytes = 256;

nghttp2_nv field(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

// Lives as long as one connection. The callbacks only note what came; what follows from it is done
// when nghttp2 has returned, because then the session may be destroyed.
struct GrpcClient::Http2 {
  explicit Http2(GrpcClient& owner) : client(owner) {
    nghttp2_session_callbacks* callbacks = nullptr;
    CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, &on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &on_close);
    CHECK(nghttp2_session_client_new(&session, callbacks, this) == 0);
    nghttp2_session_callbacks_del(callbacks);
    const std::array<nghttp2_settings_entry, 2> settings = {
        {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindowBytes}}};
    CHECK(nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) ==
          0);
    CHECK(nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kWindowBytes) == 0);
  }
  ~Http2() { nghttp2_session_del(session); }
  Http2(const Http2&) = delete;
  Http2& operator=(const Http2&) = delete;

  static int on_header(nghttp2_session* /*session*/, const nghttp2_frame* /*frame*/,
                       const std::uint8_t* name, std::size_t name_length, const std::uint8_t* value,
                       std::size_t value_length, std::uint8_t /*flags*/, void* user) {
    GrpcClient& client = static_cast<Http2*>(user)->client;
    const std::string_view key(reinterpret_cast<const char*>(name), name_length);
    const std::string_view text(reinterpret_cast<const char*>(value), value_length);
    if (key == "grpc-status") {
      client.grpc_status_ = text;
    } else if (key == "grpc-message") {
      client.grpc_message_ = text;
    } else if (key == ":status") {
      client.http_status_ = text;
    }
    return 0;
  }
  static int on_data(nghttp2_session* /*session*/, std::uint8_t /*flags*/, std::int32_t /*stream*/,
                     const std::uint8_t* data, std::size_t length, void* user) {
    static_cast<Http2*>(user)->client.message_.take(
        std::string_view(reinterpret_cast<const char*>(data), length));
    return 0;
  }
  static int on_close(nghttp2_session* /*session*/, std::int32_t stream, std::uint32_t error,
                      void* user) {
    auto& http2 = *static_cast<Http2*>(user);
    if (stream == http2.stream) {
      http2.stream = -1;
      http2.close_error = error;
      http2.client.stream_done_ = true;
    }
    return 0;
  }
  static ssize_t read_data(nghttp2_session* /*session*/, std::int32_t /*stream*/,
                           std::uint8_t* buffer, std::size_t room, std::uint32_t* flags,
                           nghttp2_data_source* /*source*/, void* user) {
    GrpcClient& client = static_cast<Http2*>(user)->client;
    std::size_t copied = 0;
    for (std::size_t i = 1; i < client.pieces_.size() && copied < room; ++i) {
      std::string_view& piece = client.pieces_[i];
      const std::size_t part = std::min(room - copied, piece.size());
      std::copy_n(piece.data(), part, buffer + copied);
      piece.remove_prefix(part);
      copied += part;
    }
    const bool empty = client.pieces_[1].empty() && client.pieces_[2].empty();
    if (empty && client.style_ == CallStyle::kUnary) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
    } else if (copied == 0) {
      return NGHTTP2_ERR_DEFERRED;
    }
    return static_cast<ssize_t>(copied);
  }

  GrpcClient& client;
  nghttp2_session* session = nullptr;
  std::int32_t stream = -1;
  std::uint32_t close_error = 0;
};

GrpcClient::GrpcClient(os::EventLoop& loop, os::Endpoint endpoint, Listener& listener,
                       BodyUse body_use, Settings settings)
    : loop_(loop),
      endpoint_(std::move(endpoint)),
      listener_(listener),
      body_use_(body_use),
      style_(settings.style),
      metadata_(std::move(settings.metadata)),
      tls_(std::move(settings.tls)) {
  for (auto& [name, value] : metadata_) {
    name = to_lower(name);  // HTTP/2 allows no capitals in names
  }
}

GrpcClient::~GrpcClient() { close(); }

bool GrpcClient::busy() const { return in_exchange_; }

// Of an answer's message. A stream's errors come as messages, so their beginning is always kept.
std::size_t GrpcClient::kept_bytes() const {
  if (body_use_ == BodyUse::kKeep) {
    return kKeptBytes;
  }
  return style_ == CallStyle::kStream ? kKeptErrorBytes : 0;
}

void GrpcClient::close() {
  if (fd_.valid()) {
    loop_.unwatch(fd_.get());
    transport_.reset();
    fd_.reset();
  }
  http2_.reset();
  unsent_.clear();
  state_ = State::kIdle;
  in_exchange_ = false;
}

void GrpcClient::send(const Pieces& pieces) {
  CHECK(!in_exchange_);
  in_exchange_ = true;
  pieces_ = pieces;
  answer_ = Answer{};
  answer_.sent = os::now();
  grpc_status_.clear();
  grpc_message_.clear();
  http_status_.clear();
  message_.start(kept_bytes());
  stream_done_ = false;
  // Stream numbers run out after a billion calls, and a server may have said goodbye.
  const bool usable =
      http2_ != nullptr &&
      (http2_->stream >= 0 || nghttp2_session_check_request_allowed(http2_->session) != 0);
  if (state_ == State::kOpen && !usable) {
    close();
    in_exchange_ = true;
  }
  if (state_ == State::kOpen) {
    submit();
  } else {
    connect();
  }
}

void GrpcClient::connect() {
  Result<os::UniqueFd> fd = os::start_connect(endpoint_);
  if (!fd.ok()) {
    fail(FailureKind::kConnect, fd.error().message);
    return;
  }
  fd_ = std::move(*fd);
  if (const Result<Ok> watched = loop_.watch(fd_.get(), EPOLLIN | EPOLLOUT, *this); !watched.ok()) {
    fd_.reset();
    fail(FailureKind::kConnect, watched.error().message);
    return;
  }
  state_ = State::kConnecting;
  http2_ = std::make_unique<Http2>(*this);
}

void GrpcClient::submit() {
  if (http2_->stream >= 0) {
    CHECK(nghttp2_session_resume_data(http2_->session, http2_->stream) == 0);
    flush();
    return;
  }
  const std::string authority =
      endpoint_.is_unix() ? "localhost" : ServerAccess{endpoint_, {}, tls_}.named().text();
  std::vector<nghttp2_nv> fields = {
      field(":method", "POST"),   field(":scheme", tls_.context ? "https" : "http"),
      field(":path", pieces_[0]), field(":authority", authority),
      field("te", "trailers"),    field("content-type", "application/grpc"),
  };
  for (const auto& [name, value] : metadata_) {
    fields.push_back(field(name, value));
  }
  nghttp2_data_provider data{};
  data.read_callback = &Http2::read_data;
  http2_->stream = nghttp2_submit_request(http2_->session, nullptr, fields.data(), fields.size(),
                                          &data, nullptr);
  if (http2_->stream < 0) {
    fail(FailureKind::kProtocol, fmt::format("{}: cannot open a stream: {}", endpoint_.text(),
                                             nghttp2_strerror(http2_->stream)));
    return;
  }
  flush();
}

void GrpcClient::fail(FailureKind kind, const std::string& reason) {
  CHECK(in_exchange_);
  close();
  listener_.on_failed(*this, kind, reason);
}

bool GrpcClient::flush() {
  for (;;) {
    if (unsent_.empty()) {
      const std::uint8_t* bytes = nullptr;
      const ssize_t length = nghttp2_session_mem_send(http2_->session, &bytes);
      if (length <= 0) {
        break;
      }
      unsent_.assign(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
    }
    const iovec frames{unsent_.data(), unsent_.size()};
    const ssize_t sent = transport_->send(std::span(&frames, 1));
    if (sent < 0 && errno == EINTR) {
      continue;
    }
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      transport_->wait_for(EPOLLIN | EPOLLOUT);
      return true;
    }
    if (sent < 0) {
      if (in_exchange_) {
        fail(FailureKind::kReset, fmt::format("{}: sending the request failed: {}",
                                              endpoint_.text(), transport_->failure()));
      } else {
        close();
      }
      return false;
    }
    unsent_.erase(0, static_cast<std::size_t>(sent));
  }
  transport_->wait_for(EPOLLIN);
  if (in_exchange_ && answer_.send_ended == Instant{} && pieces_[1].empty() && pieces_[2].empty()) {
    answer_.send_ended = os::now();
  }
  return true;
}

void GrpcClient::on_ready(std::uint32_t events) {
  if (state_ == State::kConnecting) {
    if (const int error = os::connect_result(fd_.get()); error != 0) {
      fail(FailureKind::kConnect,
           fmt::format("cannot connect to {}: {}", endpoint_.text(), std::strerror(error)));
      return;
    }
    transport_.emplace(loop_, fd_.get(), tls_);
    state_ = State::kOpening;
  }
  if (state_ == State::kOpening) {
    open_transport();
    return;
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    read_bytes();
  } else if ((events & EPOLLOUT) != 0) {
    flush();
  }
}

void GrpcClient::open_transport() {
  switch (transport_->open()) {
    case ClientTransport::Opening::kOpen:
      state_ = State::kOpen;
      submit();
      return;
    case ClientTransport::Opening::kUnderWay:
      return;
    case ClientTransport::Opening::kFailed:
      fail(FailureKind::kProtocol,
           fmt::format("cannot speak TLS with {}: {}", endpoint_.text(), transport_->failure()));
      return;
  }
}

void GrpcClient::read_bytes() {
  std::array<std::uint8_t, kReadBytes> buffer;
  const ssize_t got = transport_->receive(buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (got <= 0) {
    if (!in_exchange_) {
      close();
      return;
    }
    fail(FailureKind::kReset,
         fmt::format("{}: the connection closed before the whole answer", endpoint_.text()));
    return;
  }
  if (in_exchange_) {
    answer_.ended = loop_.now();
    if (answer_.first_byte == Instant{}) {
      answer_.first_byte = answer_.ended;
    }
  }
  const ssize_t taken =
      nghttp2_session_mem_recv(http2_->session, buffer.data(), static_cast<std::size_t>(got));
  if (taken < 0) {
    if (in_exchange_) {
      fail(FailureKind::kProtocol,
           fmt::format("{} does not speak HTTP/2 as it should: {}", endpoint_.text(),
                       nghttp2_strerror(static_cast<int>(taken))));
    } else {
      close();
    }
    return;
  }
  if (!flush() || !in_exchange_) {
    return;  // window updates and acknowledgements
  }
  if (stream_done_) {
    stream_ended(http2_->close_error);
  } else if (style_ == CallStyle::kStream && message_.done()) {
    grpc_status_ = "0";
    finish();
  }
}

void GrpcClient::stream_ended(std::uint32_t error_code) {
  if (error_code != NGHTTP2_NO_ERROR) {
    fail(error_code == NGHTTP2_REFUSED_STREAM ? FailureKind::kRefused : FailureKind::kReset,
         fmt::format("{} ended the stream: {}", endpoint_.text(),
                     nghttp2_http2_strerror(error_code)));
    return;
  }
  if (grpc_status_.empty()) {
    fail(FailureKind::kProtocol,
         fmt::format("{} does not speak gRPC: HTTP status {}", endpoint_.text(), http_status_));
    return;
  }
  if (style_ == CallStyle::kStream && grpc_status_ == "0" && !message_.done()) {
    fail(FailureKind::kReset, fmt::format("{} ended the stream", endpoint_.text()));
    return;
  }
  finish();
}

void GrpcClient::finish() {
  const auto code = parse_uint(grpc_status_);
  answer_.status = http_status_of_grpc(static_cast<unsigned>(code.value_or(2)));
  answer_.body = answer_.status == 200 ? message_.text() : grpc_message_;
  if (style_ == CallStyle::kStream) {
    if (const std::optional<std::string_view> error = stream_error(message_.text())) {
      answer_.status = 500;  // a stream does not say which kind of error it is
      answer_.body = *error;
    }
  }
  if (answer_.send_ended == Instant{}) {
    answer_.send_ended = answer_.ended;
  }
  in_exchange_ = false;
  listener_.on_answered(*this, answer_);
}

}  // namespace septet::measure
