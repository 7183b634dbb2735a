// GrpcSlotCall: one ModelInfer call whose message lies in a slot, at a replica that reads it there
// (inference/slot_call.h). It goes over the replica's connections for HTTP.
//
// Owned by its GrpcStream, which has the call's ticket; used by the reactor's thread.
#pragma once

#include <string>

#include "balance/edge/byte_queue.h"
#include "balance/edge/exchange.h"

namespace septet::balance {

class Reactor;

class GrpcSlotCall final : public ReplySink {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The replica's answer, counted already: the response message, or the error's text.
    virtual void on_slot_answer(std::string_view grpc_status, std::string_view body) = 0;
    // There is none and will be none; the status is HTTP's. A call that can be sent again is not
    // told of: the dispatcher has it.
    virtual void on_slot_call_lost(unsigned status, std::string_view message) = 0;
  };

  GrpcSlotCall(Reactor& reactor, Owner& owner)
      : reactor_(reactor), owner_(owner), exchange_(*this) {}
  ~GrpcSlotCall() override { abandon(); }
  GrpcSlotCall(const GrpcSlotCall&) = delete;
  GrpcSlotCall& operator=(const GrpcSlotCall&) = delete;

  // The message, prefix and all, in the slot from `at` on.
  struct Message {
    const Body& slot;
    std::size_t at = 0;
    std::string_view bytes;
  };
  void send(Replica& replica, const Message& message, const Dispatched& call);
  bool in_flight() const { return exchange_.connection != nullptr; }
  // The client is gone. The replica may read on; nothing is told any more.
  void abandon();

  void on_whole_reply(const WholeReply& reply) override;
  void on_reply_head(const inference::HttpHead& head) override;
  Flow on_reply_data(std::string_view data, std::string_view wire) override;
  void on_reply_end() override;
  void on_no_reply(unsigned status, std::string_view message) override;

 private:
  Reactor& reactor_;
  Owner& owner_;
  Exchange exchange_;
  std::string grpc_status_;  // of a reply that comes in pieces
  ByteQueue reply_;
  bool too_large_ = false;
};

}  // namespace septet::balance
