// GrpcCall: one gRPC call on its way to a replica; what Exchange is for HTTP/1.1.
//
// Implemented by a client's stream and by a branch of a fan-out. The upstream side calls it in the
// order head, data..., trailers, end; or lost, at any point. The request can be supplied again from
// its start while it may be repeated.
#pragma once

#include <string_view>

#include "balance/edge/exchange.h"
#include "balance/edge/http2_codec.h"
#include "base/check.h"

namespace septet::balance {

class GrpcUpstreamStream;

class GrpcCall : public Dispatched {
 public:
  void hedge_to(Replica& /*replica*/, Ticket /*copy*/) override { CHECK(!may_be_hedged); }
  // As sent to the replica.
  const FieldList& request() const { return request_; }
  virtual Http2Stream::Supply supply_request(char* to, std::size_t room) = 0;
  // The views live as long as the call. Of a reply without data, head carries the status.
  virtual void on_reply_head(const FieldList& fields) = 0;
  virtual void on_reply_data(std::string_view data) = 0;
  virtual void on_reply_trailers(const FieldList& fields) = 0;
  virtual void on_reply_end() = 0;
  // No reply, or no more of it.
  virtual void on_lost(Replica& replica, Failure failure) = 0;

  GrpcUpstreamStream* upstream = nullptr;  // while a replica has it

 protected:
  FieldList request_;
};

}  // namespace septet::balance
