// Http2Session: an Http2Codec on a socket and an event loop.
//
// Owned by whoever answers its streams, used by the reactor's thread. Nothing is written before
// flush(), so that what belongs together leaves in one piece: the owner calls it after every event
// in which it may have submitted something.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "balance/edge/http2_codec.h"
#include "inference/edge/tls_stream.h"
#include "os/event_loop.h"
#include "os/unique_fd.h"

namespace septet::balance {

class Http2Session final : public os::EventLoop::Watcher {
 public:
  class Owner : public Http2Codec::Owner {
   public:
    // Bytes came and were dealt with; the connection may have closed meanwhile.
    virtual void on_round_end() = 0;
    // What there was to say is written, or as much of it as the peer takes now.
    virtual void on_flushed() {}
    // The connection is gone; streams that had not closed never will.
    virtual void on_connection_closed() = 0;
  };

  Http2Session(os::EventLoop& loop, Owner& owner, Http2Codec::Role role,
               const Http2Codec::Limits& limits);
  ~Http2Session() override;
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;

  // Takes the socket; kConnecting: its connect has not finished yet. tls: null for a connection
  // that is not encrypted.
  enum class Socket { kConnected, kConnecting };
  Result<Ok> adopt(os::UniqueFd fd, Socket socket,
                   std::unique_ptr<inference::TlsStream> tls = nullptr);
  // Bytes that were read from the socket elsewhere.
  void received(std::string_view bytes);
  void flush();
  void close();

  Http2Codec& codec() { return codec_; }
  const Http2Codec& codec() const { return codec_; }
  bool open() const { return fd_.valid(); }
  bool connected() const { return connected_; }
  // Whether the peer does not take what there is to write.
  bool stuck() const { return connected_ && wants_writable_; }

  void on_ready(std::uint32_t events) override;

 private:
  void watch_events();
  void take(std::string_view bytes);
  bool read_once();
  ssize_t send_rest();
  bool fill();

  os::EventLoop& loop_;
  Owner& owner_;
  Http2Codec::Role role_;
  Http2Codec codec_;
  os::UniqueFd fd_;
  std::unique_ptr<inference::TlsStream> tls_;
  bool connected_ = false;
  bool wants_writable_ = false;
  bool reads_ = true;
  bool in_codec_ = false;
  std::uint32_t events_ = 0;
  std::string out_;  // memory kept
  std::size_t out_sent_ = 0;
};

}  // namespace septet::balance
