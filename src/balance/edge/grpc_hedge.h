// GrpcHedge: the second copy of a gRPC request, at another replica, until it is known which of the
// two is answered first.
//
// Owned by the GrpcStream whose request it is. The first byte of a reply decides, or the end of one
// without data that is no error.
#pragma once

#include "balance/edge/grpc_call.h"

namespace septet::balance {

class Reactor;

class GrpcHedge final : public GrpcCall {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The copy is answered first. The owner takes its place, which destroys it, and gets the rest
    // of the reply from here on.
    virtual void on_second_answers(GrpcHedge& second) = 0;
    // It gets no reply; destroys it.
    virtual void on_second_lost() = 0;
    // The framed request.
    virtual std::string_view message() const = 0;

   protected:
    Owner() = default;
  };

  // first: the owner as a call, which has been sent.
  GrpcHedge(Owner& owner, GrpcCall& first, Reactor& reactor, Ticket copy);

  const FieldList& reply_head() const { return reply_head_; }
  const FieldList& reply_trailers() const { return reply_trailers_; }
  // Bytes of the request.
  std::size_t sent() const { return sent_; }

  void go_to(Replica& replica) override;
  void on_refused(unsigned status, std::string_view message) override;
  Http2Stream::Supply supply_request(char* to, std::size_t room) override;
  void on_reply_head(const FieldList& fields) override { reply_head_ = fields; }
  void on_reply_data(std::string_view data) override;
  void on_reply_trailers(const FieldList& fields) override { reply_trailers_ = fields; }
  void on_reply_end() override;
  void on_lost(Replica& replica, Failure failure) override;

 private:
  void lose(Failure failure);

  Owner& owner_;
  GrpcCall& first_;
  Reactor& reactor_;
  std::size_t sent_ = 0;
  FieldList reply_head_;
  FieldList reply_trailers_;
};

}  // namespace septet::balance
