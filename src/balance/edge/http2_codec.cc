#include "balance/edge/http2_codec.h"

#include <nghttp2/nghttp2.h>

#include <array>
#include <vector>

#include "base/check.h"

namespace septet::balance {

namespace {

// What is passed on has at most 100, and two or three of our own.
constexpr std::size_t kMaxFields = 104;

std::string_view view(const std::uint8_t* bytes, std::size_t length) {
  return {reinterpret_cast<const char*>(bytes), length};
}

std::uint8_t* bytes_of(std::string_view text) {
  return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
}

// The list as nghttp2 wants it; nghttp2 copies what it points to.
struct NameValues {
  explicit NameValues(const FieldList& fields) {
    fields.each([this](const FieldList::Field& field) {
      if (count < values.size()) {
        values[count++] = {bytes_of(field.name), bytes_of(field.value), field.name.size(),
                           field.value.size(), NGHTTP2_NV_FLAG_NONE};
      }
    });
  }
  std::array<nghttp2_nv, kMaxFields> values;
  std::size_t count = 0;
};

Http2Frame kind_of(const nghttp2_frame_hd& head) {
  switch (head.type) {
    case NGHTTP2_DATA:
      return head.length > 0 ? Http2Frame::kData : Http2Frame::kEmptyData;
    case NGHTTP2_HEADERS:
      return Http2Frame::kHead;
    case NGHTTP2_CONTINUATION:
      return Http2Frame::kContinuation;
    case NGHTTP2_RST_STREAM:
      return Http2Frame::kReset;
    case NGHTTP2_SETTINGS:
      return (head.flags & NGHTTP2_FLAG_ACK) != 0 ? Http2Frame::kOther : Http2Frame::kSettings;
    case NGHTTP2_PING:
      return (head.flags & NGHTTP2_FLAG_ACK) != 0 ? Http2Frame::kOther : Http2Frame::kPing;
    default:
      return Http2Frame::kOther;
  }
}

}  // namespace

// user is the Http2Codec.
struct Http2Codec::Callbacks {
  static Http2Codec& codec(void* user) { return *static_cast<Http2Codec*>(user); }

  static int begin_frame(nghttp2_session* /*session*/, const nghttp2_frame_hd* head, void* user) {
    return codec(user).owner_.on_frame(kind_of(*head), head->length) ? 0
                                                                     : NGHTTP2_ERR_CALLBACK_FAILURE;
  }
  static int begin_headers(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
      return 0;
    }
    Http2Stream* const stream = codec(user).owner_.on_stream_opened(frame->hd.stream_id);
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
    return stream != nullptr ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }
  static int header(nghttp2_session* /*session*/, const nghttp2_frame* frame,
                    const std::uint8_t* name, std::size_t name_length, const std::uint8_t* value,
                    std::size_t value_length, std::uint8_t /*flags*/, void* user) {
    Http2Stream* const stream = codec(user).stream(frame->hd.stream_id);
    const bool taken =
        stream == nullptr || stream->on_field(view(name, name_length), view(value, value_length));
    return taken ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }
  static int bad_header(nghttp2_session* /*session*/, const nghttp2_frame* frame,
                        const std::uint8_t* /*name*/, std::size_t /*name_length*/,
                        const std::uint8_t* /*value*/, std::size_t /*value_length*/,
                        std::uint8_t /*flags*/, void* user) {
    if (Http2Stream* const stream = codec(user).stream(frame->hd.stream_id)) {
      stream->on_bad_field();
    }
    return 0;
  }
  static int frame_done(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) {
      return 0;
    }
    Http2Stream* stream = codec(user).stream(frame->hd.stream_id);
    if (stream != nullptr && frame->hd.type == NGHTTP2_HEADERS) {
      stream->on_fields_end();
      stream = codec(user).stream(frame->hd.stream_id);  // it may have been handed over
    }
    if (stream != nullptr && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
      stream->on_end();
    }
    return 0;
  }
  static int data(nghttp2_session* session, std::uint8_t /*flags*/, std::int32_t id,
                  const std::uint8_t* bytes, std::size_t length, void* user) {
    if (Http2Stream* const stream = codec(user).stream(id)) {
      stream->on_data(view(bytes, length));
    } else {
      nghttp2_session_consume(session, id, length);
    }
    return 0;
  }
  static int closed(nghttp2_session* session, std::int32_t id, std::uint32_t error, void* user) {
    if (Http2Stream* const stream = codec(user).stream(id)) {
      nghttp2_session_set_stream_user_data(session, id, nullptr);
      stream->on_closed(static_cast<Http2Error>(error));
    }
    return 0;
  }
  static ssize_t read(nghttp2_session* /*session*/, std::int32_t id, std::uint8_t* buffer,
                      std::size_t room, std::uint32_t* flags, nghttp2_data_source* /*source*/,
                      void* user) {
    using Then = Http2Stream::Supply::Then;
    Http2Stream* const stream = codec(user).stream(id);
    if (stream == nullptr) {
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    const Http2Stream::Supply supply = stream->supply(reinterpret_cast<char*>(buffer), room);
    if (supply.then == Then::kLater && supply.bytes == 0) {
      return NGHTTP2_ERR_DEFERRED;
    }
    if (supply.then == Then::kEnd) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
    } else if (supply.then == Then::kTrailers) {
      *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    }
    return static_cast<ssize_t>(supply.bytes);
  }
  // A server that has said all while the client still speaks tells it to stop (RFC 9113 8.1).
  static int frame_sent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    const bool may_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (codec(user).role_ == Role::kServer && may_end &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
        nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) == 0) {
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    }
    return 0;
  }
  static nghttp2_session_callbacks* make() {
    nghttp2_session_callbacks* callbacks = nullptr;
    CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, &begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, &begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, &header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, &bad_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &frame_done);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, &frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &closed);
    return callbacks;
  }
};

Http2Codec::Http2Codec(Owner& owner, Role role, const Limits& limits) : owner_(owner), role_(role) {
  nghttp2_session_callbacks* const callbacks = Callbacks::make();
  nghttp2_option* option = nullptr;
  CHECK(nghttp2_option_new(&option) == 0);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  const int made = role == Role::kServer
                       ? nghttp2_session_server_new2(&session_, callbacks, this, option)
                       : nghttp2_session_client_new2(&session_, callbacks, this, option);
  CHECK(made == 0);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  const std::array<nghttp2_settings_entry, 4> settings = {
      {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.max_streams},
       {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(limits.stream_window)},
       {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(limits.max_head_bytes)},
       {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}}};
  // A server does not speak of push.
  const std::size_t count = role == Role::kServer ? 3 : 4;
  CHECK(nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), count) == 0);
  CHECK(nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0,
                                              limits.connection_window) == 0);
}

Http2Codec::~Http2Codec() { nghttp2_session_del(session_); }

Http2Stream* Http2Codec::stream(StreamId id) const {
  return static_cast<Http2Stream*>(nghttp2_session_get_stream_user_data(session_, id));
}

bool Http2Codec::receive(std::string_view bytes) {
  const ssize_t taken = nghttp2_session_mem_recv(session_, bytes_of(bytes), bytes.size());
  if (taken >= 0) {
    return true;
  }
  if (taken == NGHTTP2_ERR_CALLBACK_FAILURE || taken == NGHTTP2_ERR_FLOODED) {
    terminate(Http2Error::kEnhanceYourCalm);
  }
  return false;
}

bool Http2Codec::take_output(std::string& out, std::size_t enough) {
  while (out.size() < enough) {
    const std::uint8_t* frames = nullptr;
    const ssize_t length = nghttp2_session_mem_send(session_, &frames);
    if (length < 0) {
      return false;
    }
    if (length == 0) {
      return true;
    }
    out.append(view(frames, static_cast<std::size_t>(length)));
  }
  return true;
}

bool Http2Codec::finished() const {
  return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
}

std::size_t Http2Codec::waiting_frames() const {
  return nghttp2_session_get_outbound_queue_size(session_);
}

StreamId Http2Codec::submit_request(const FieldList& fields, Http2Stream& stream) {
  const NameValues nv(fields);
  nghttp2_data_provider provider{};
  provider.read_callback = &Callbacks::read;
  const StreamId id =
      nghttp2_submit_request(session_, nullptr, nv.values.data(), nv.count, &provider, &stream);
  return id > 0 ? id : 0;
}

void Http2Codec::hand_over(StreamId id, Http2Stream& stream) {
  nghttp2_session_set_stream_user_data(session_, id, &stream);
}

void Http2Codec::submit_interim(StreamId id, const FieldList& fields) {
  const NameValues nv(fields);
  nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, id, nullptr, nv.values.data(), nv.count,
                         nullptr);
}

void Http2Codec::submit_response(StreamId id, const FieldList& fields, Body body) {
  const NameValues nv(fields);
  nghttp2_data_provider provider{};
  provider.read_callback = &Callbacks::read;
  nghttp2_submit_response(session_, id, nv.values.data(), nv.count,
                          body == Body::kFollows ? &provider : nullptr);
}

void Http2Codec::submit_trailers(StreamId id, const FieldList& fields) {
  const NameValues nv(fields);
  nghttp2_submit_trailer(session_, id, nv.values.data(), nv.count);
}

void Http2Codec::reset(StreamId id, Http2Error error) {
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, static_cast<std::uint32_t>(error));
}

void Http2Codec::more(StreamId id) { nghttp2_session_resume_data(session_, id); }

void Http2Codec::consume_stream(StreamId id, std::size_t bytes) {
  nghttp2_session_consume_stream(session_, id, bytes);
}

void Http2Codec::consume_connection(std::size_t bytes) {
  nghttp2_session_consume_connection(session_, bytes);
}

void Http2Codec::open_window(StreamId id, std::size_t bytes) {
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, id,
                                        static_cast<std::int32_t>(bytes));
}

void Http2Codec::say_goodbye() {
  if (!goodbye_) {
    goodbye_ = true;
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                          nullptr, 0);
  }
}

void Http2Codec::terminate(Http2Error error) {
  nghttp2_session_terminate_session(session_, static_cast<std::uint32_t>(error));
}

bool Http2Codec::takes_requests() const {
  return !goodbye_ && nghttp2_session_check_request_allowed(session_) != 0;
}

}  // namespace septet::balance
