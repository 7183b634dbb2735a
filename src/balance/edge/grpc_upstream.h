// GrpcUpstream: the HTTP/2 connections to one replica's gRPC server, and the calls on them.
//
// Owned by Replica, used by the reactor's thread. One connection carries all calls; a second one is
// made when the first takes no more (the server has said goodbye, or its stream numbers are used
// up), and the first goes when its last call has ended.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "balance/edge/grpc_call.h"
#include "balance/edge/http2_session.h"
#include "os/endpoint.h"

namespace septet::balance {

class GrpcUpstream;
class GrpcUpstreamConnection;
class Reactor;

// One call at the replica. Destroyed when its stream has closed.
class GrpcUpstreamStream final : public Http2Stream {
 public:
  GrpcUpstreamStream(GrpcUpstreamConnection& connection, GrpcCall& call);

  // The call is gone; the replica is told.
  void cancel();
  // The call is gone, but its replica works on: the reply will be thrown away, then reported with
  // that ticket. False: it was not sent to its end, so it is cancelled, and nothing will be.
  bool discard(Ticket ticket);
  // Goes on for another call with the same request.
  void hand_over(GrpcCall& call);
  // So many bytes of its reply have gone on.
  void consume(std::size_t bytes);
  // The request has more to send.
  void more();

  bool on_field(std::string_view name, std::string_view value) override;
  void on_fields_end() override;
  void on_data(std::string_view bytes) override;
  void on_end() override;
  void on_closed(Http2Error error) override;
  Supply supply(char* to, std::size_t room) override;

 private:
  friend class GrpcUpstreamConnection;
  void lose(Failure failure);
  bool waited_for() const { return call_ != nullptr || discarded_; }

  GrpcUpstreamConnection& connection_;
  GrpcCall* call_;                   // null once it has its reply, is lost or gone
  std::optional<Ticket> discarded_;  // of a call that was answered by another replica
  StreamId id_ = 0;
  Instant deadline_;
  FieldList fields_;
  bool has_head_ = false;
  bool request_ended_ = false;
};

class GrpcUpstreamConnection final : public Http2Session::Owner {
 public:
  GrpcUpstreamConnection(Reactor& reactor, GrpcUpstream& owner);

  Result<Ok> adopt(os::UniqueFd fd, bool connected);
  bool takes_calls() const;
  bool quiet() const { return streams_.empty(); }
  void start(GrpcCall& call);
  void check_time(Instant now);

  Http2Stream* on_stream_opened(StreamId stream) override;
  bool on_frame(Http2Frame frame, std::size_t bytes) override;
  void on_round_end() override;
  void on_connection_closed() override;

 private:
  friend class GrpcUpstreamStream;
  void flush_later();

  Reactor& reactor_;
  GrpcUpstream& owner_;
  Http2Session session_;
  std::map<StreamId, std::unique_ptr<GrpcUpstreamStream>> streams_;
};

class GrpcUpstream {
 public:
  GrpcUpstream(Reactor& reactor, Replica& replica, os::Endpoint endpoint);
  ~GrpcUpstream();
  GrpcUpstream(const GrpcUpstream&) = delete;
  GrpcUpstream& operator=(const GrpcUpstream&) = delete;

  // Sends the call. That it is lost may be told before this returns.
  void start(GrpcCall& call);
  // Whether no call is under way.
  bool quiet() const;
  // Ends calls that are past their deadline, forgets connections that are done.
  void check_time(Instant now);
  Replica& replica() { return replica_; }

 private:
  Reactor& reactor_;
  Replica& replica_;
  os::Endpoint endpoint_;
  std::vector<std::unique_ptr<GrpcUpstreamConnection>> connections_;
};

}  // namespace septet::balance
