// Http2Connection: one HTTP/2 client; every request on it is balanced by itself.
//
// Owned by the Reactor, used by its thread. It begins as a ClientConnection and is made when its
// first bytes are HTTP/2's preface. A gRPC call becomes a GrpcStream, all else an HttpStream.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "balance/edge/client.h"
#include "balance/edge/client_stream.h"
#include "balance/edge/http2_session.h"

namespace septet::balance {

class Reactor;

class Http2Connection final : public Client, public Http2Session::Owner {
 public:
  explicit Http2Connection(Reactor& reactor);
  ~Http2Connection() override;
  Http2Connection(const Http2Connection&) = delete;
  Http2Connection& operator=(const Http2Connection&) = delete;

  // Takes the socket and what was read from it. The connection may be closed at the return.
  Result<Ok> begin(os::UniqueFd fd, std::unique_ptr<inference::TlsStream> tls,
                   std::string_view received);

  void check_time(Instant now) override;
  void memory_freed() override;

  // For its streams.
  Http2Codec& codec() { return session_.codec(); }
  void flush_later();
  void wait_for_memory(StreamId stream);
  // Calls go_on() when what there is to write has been.
  void wait_to_go_on(StreamId stream) { to_go_on_.push_back(stream); }
  void data_sent(std::size_t bytes);
  void call_ended() { guard_.call_ended(); }
  // The stream is destroyed.
  void forget(StreamId id);
  // Queued calls are queued again: which replicas may take them has changed.
  void requeue_calls();

  Http2Stream* on_stream_opened(StreamId id) override;
  bool on_frame(Http2Frame frame, std::size_t bytes) override;
  void on_round_end() override;
  void on_flushed() override;
  void on_connection_closed() override;

 private:
  // A stream until its head is whole. There is one at a time, as nothing may come in between
  // (RFC 9113 4.3).
  class Opening final : public Http2Stream {
   public:
    explicit Opening(Http2Connection& connection) : connection_(connection) {}
    void open(StreamId id);
    bool on_field(std::string_view name, std::string_view value) override;
    void on_bad_field() override;
    void on_fields_end() override;
    void on_data(std::string_view bytes) override;
    void on_end() override {}
    void on_closed(Http2Error /*error*/) override {}
    Supply supply(char* /*to*/, std::size_t /*room*/) override { return {}; }

   private:
    Http2Connection& connection_;
    StreamId id_ = 0;  // none: that was reset
    ClientStream::Head head_;
    std::size_t bytes_ = 0;  // of all its fields, also those that were left out
    std::size_t fields_ = 0;
  };

  void begin_stream(StreamId id, ClientStream::Head head);

  Reactor& reactor_;
  FloodGuard guard_;
  Http2Session session_;
  Opening opening_{*this};
  std::map<StreamId, std::unique_ptr<ClientStream>> streams_;
  std::deque<StreamId> waiting_for_memory_;
  std::vector<StreamId> to_go_on_;
  Instant since_;  // of the last call's end, or of being stuck
};

}  // namespace septet::balance
