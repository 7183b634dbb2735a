// GrpcStream: one call of a client, from its head to the end of its reply.
//
//   body -> (memory) -> waiting -> replying -> done          a single request
//   replying (both ways) -> done                            a stream, pinned to a replica
//
// A single request that takes long may be at two replicas; the second copy is a GrpcHedge until it
// is answered first, and then this stream's own call.
//
// A single request is kept whole until its reply is complete, so that it can be sent to another
// replica; a stream passes through windows of 64 and 256 KiB. Owned by its Http2Connection.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "balance/edge/byte_queue.h"
#include "balance/edge/client_stream.h"
#include "balance/edge/fan_out.h"
#include "balance/edge/grpc_call.h"
#include "balance/edge/grpc_fan_out.h"
#include "balance/edge/grpc_hedge.h"
#include "balance/edge/grpc_messages.h"
#include "balance/edge/grpc_slot_call.h"
#include "balance/edge/request_wishes.h"
#include "balance/grpc_route.h"

namespace septet::balance {

class Http2Connection;
class Reactor;

class GrpcStream final : public ClientStream,
                         public GrpcCall,
                         public GrpcHedge::Owner,
                         public FanOut::Owner,
                         public GrpcFanOut::Owner,
                         public GrpcSlotCall::Owner {
 public:
  GrpcStream(Reactor& reactor, Http2Connection& connection, StreamId id, FieldList head);
  ~GrpcStream() override;

  void begin() override;
  void check_time(Instant now) override;
  void memory_freed() override;
  void requeue() override;

  // The client's side.
  void on_data(std::string_view bytes) override;
  void on_end() override;
  void on_closed(Http2Error error) override;
  Supply supply(char* to, std::size_t room) override;

  // The replica's side.
  void go_to(Replica& replica) override;
  void hedge_to(Replica& replica, Ticket copy) override;
  void on_refused(unsigned status, std::string_view message) override;
  Supply supply_request(char* to, std::size_t room) override;
  void on_reply_head(const FieldList& fields) override;
  void on_reply_data(std::string_view data) override;
  void on_reply_trailers(const FieldList& fields) override;
  void on_reply_end() override;
  void on_lost(Replica& replica, Failure failure) override;

  // The second copy's side. Its call ends with each of these.
  void on_second_answers(GrpcHedge& second) override;
  void on_second_lost() override;
  std::string_view message() const override { return body_.all(); }
  // The same of a replica that reads the message in a slot.
  void on_slot_answer(std::string_view grpc_status, std::string_view body) override;
  void on_slot_call_lost(unsigned status, std::string_view message) override;

  // The fan-outs' side.
  void on_merged(const MergedReply& reply) override;
  void on_merged_call(const GrpcReply& reply) override;

 private:
  enum class State { kBody, kMemory, kWaiting, kReplying, kDone };

  void read_wishes();
  void build_request();
  void begin_stream();
  void take_unary(std::string_view bytes);
  void place(std::uint64_t announced, std::string_view beginning);
  bool reserve();
  void dispatch();
  void queue();
  void start_fan_out();
  void answer(std::string_view protobuf);
  void fail(GrpcStatus status, std::string_view message);
  void commit();
  void end_reply();
  void drop_second();
  bool fall_back();
  void note_reply();
  void let_go();
  void unpin();
  bool is_stream() const { return kind_ == GrpcKind::kStream; }

  Reactor& reactor_;
  Http2Connection& connection_;
  StreamId id_;
  State state_ = State::kBody;
  GrpcKind kind_ = GrpcKind::kInfer;
  bool client_ended_ = false;  // it sends nothing more
  bool committed_ = false;     // the reply's head has gone to the client
  bool reply_ended_ = false;
  Instant since_;
  ByteQueue body_;              // of the request
  std::size_t unconsumed_ = 0;  // bytes of the request that the client's window still counts
  std::string model_;
  RequestWishes wishes_;
  FieldList head_;  // the client's
  FieldList reply_head_;
  ByteQueue reply_;
  std::size_t reply_unconsumed_ = 0;
  FieldList trailers_;
  int returns_ = 0;                    // how often a replica gave it back unread
  std::unique_ptr<GrpcHedge> second_;  // while both copies may be answered first
  std::optional<ReplicaIndex> pinned_;
  GrpcQuestion question_;  // as the HTTP fan-out asks it
  std::unique_ptr<GrpcSlotCall> slot_call_;
  std::unique_ptr<FanOut> fan_out_;
  std::unique_ptr<GrpcFanOut> call_fan_out_;
};

}  // namespace septet::balance
