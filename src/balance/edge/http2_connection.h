// Http2Connection: one HTTP/2 client; every gRPC call on it is balanced by itself.
//
// Owned by the Reactor, used by its thread. It begins as a ClientConnection and is made when its
// first bytes are HTTP/2's preface.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "balance/edge/client.h"
#include "balance/edge/grpc_stream.h"
#include "balance/edge/http2_session.h"

namespace septet::balance {

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
  void wait_for_memory(GrpcStream& stream);
  void data_sent(std::size_t bytes);
  void call_ended() { guard_.call_ended(); }
  // The stream is destroyed.
  void forget(StreamId id);
  // Queued calls are queued again: which replicas may take them has changed.
  void requeue_calls();

  Http2Stream* on_stream_opened(StreamId id) override;
  bool on_frame(Http2Frame frame, std::size_t bytes) override;
  void on_round_end() override;
  void on_connection_closed() override;

 private:
  Reactor& reactor_;
  FloodGuard guard_;
  Http2Session session_;
  std::map<StreamId, std::unique_ptr<GrpcStream>> streams_;
  std::deque<StreamId> waiting_for_memory_;
  Instant since_;  // of the last call's end, or of being stuck
};

}  // namespace septet::balance
