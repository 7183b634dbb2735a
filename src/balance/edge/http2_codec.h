// Http2Codec: one HTTP/2 connection without I/O; frames by libnghttp2.
//
// Owned by an Http2Session (or a test), used by its thread. Bytes go in by receive() and come out
// by take_output(). Callbacks may submit, reset and consume, but neither receive, take output nor
// destroy. Windows are opened only by consume_...() and open_window(), so nobody sends more than
// there is room for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "balance/field_list.h"
#include "balance/flood_guard.h"

struct nghttp2_session;

namespace septet::balance {

using StreamId = std::int32_t;

// RFC 9113 7: those that are said or asked for here.
enum class Http2Error : std::uint32_t {
  kNone = 0,
  kInternal = 2,
  kRefusedStream = 7,
  kCancel = 8,
  kEnhanceYourCalm = 11
};

// One stream as its owner sees it. After on_closed() it is not called any more.
class Http2Stream {
 public:
  virtual ~Http2Stream() = default;
  // False: too much; the stream is reset.
  virtual bool on_field(std::string_view name, std::string_view value) = 0;
  // A field that is none was left out.
  virtual void on_bad_field() {}
  // A block of fields is complete: a head, or trailers.
  virtual void on_fields_end() = 0;
  virtual void on_data(std::string_view bytes) = 0;
  // The peer sends nothing more.
  virtual void on_end() = 0;
  virtual void on_closed(Http2Error error) = 0;
  // Bytes to send next. kLater: none for now, until more(). kTrailers: the owner has called
  // submit_trailers().
  struct Supply {
    std::size_t bytes = 0;
    enum class Then { kMore, kLater, kEnd, kTrailers } then = Then::kMore;
  };
  virtual Supply supply(char* to, std::size_t room) = 0;
};

class Http2Codec {
 public:
  enum class Role { kServer, kClient };
  enum class Body { kNone, kFollows };
  struct Limits {
    std::uint32_t max_streams = 128;           // that the peer may open
    std::size_t max_head_bytes = 32 * 1024;    // announced; the streams enforce it
    std::int32_t stream_window = 65535;        // bytes of one stream that are not consumed
    std::int32_t connection_window = 1 << 22;  // and of all
  };
  class Owner {
   public:
    virtual ~Owner() = default;
    // A server's stream begins; null refuses it.
    virtual Http2Stream* on_stream_opened(StreamId stream) = 0;
    // False: the peer is a flood; receive() fails.
    virtual bool on_frame(Http2Frame frame, std::size_t bytes) = 0;
  };

  Http2Codec(Owner& owner, Role role, const Limits& limits);
  ~Http2Codec();
  Http2Codec(const Http2Codec&) = delete;
  Http2Codec& operator=(const Http2Codec&) = delete;

  // False: the peer has broken the protocol or floods; what take_output() still gives says so.
  bool receive(std::string_view bytes);
  // Appends frames until out holds about so much; false when the session is of no more use.
  bool take_output(std::string& out, std::size_t enough);
  // Nothing more to receive or to send.
  bool finished() const;
  std::size_t waiting_frames() const;

  // 0 when the connection takes no more. The stream has to live until on_closed().
  StreamId submit_request(const FieldList& fields, Http2Stream& stream);
  // What comes of the stream from now on is for that one.
  void hand_over(StreamId id, Http2Stream& stream);
  // A head before the reply's, of a status below 200.
  void submit_interim(StreamId id, const FieldList& fields);
  void submit_response(StreamId id, const FieldList& fields, Body body);
  void submit_trailers(StreamId id, const FieldList& fields);
  void reset(StreamId id, Http2Error error);
  // The stream's supply() has something again.
  void more(StreamId id);
  // So many bytes of on_data() are dealt with and may be followed by others.
  void consume_stream(StreamId id, std::size_t bytes);
  void consume_connection(std::size_t bytes);
  // Lets the peer send so much of the stream without waiting.
  void open_window(StreamId id, std::size_t bytes);
  // No more streams; those that are there go on.
  void say_goodbye();
  // Ends the connection with that error, as far as the peer still listens.
  void terminate(Http2Error error);
  // Whether a client may submit another request here.
  bool takes_requests() const;

 private:
  struct Callbacks;  // nghttp2's
  friend struct Callbacks;

  Http2Stream* stream(StreamId id) const;

  Owner& owner_;
  Role role_;
  nghttp2_session* session_ = nullptr;
  bool goodbye_ = false;
};

}  // namespace septet::balance
