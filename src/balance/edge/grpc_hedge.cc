#include "balance/edge/grpc_hedge.h"

#include <algorithm>
#include <cstring>

#include "balance/edge/reactor.h"

namespace septet::balance {

GrpcHedge::GrpcHedge(Owner& owner, GrpcCall& first, Reactor& reactor, Ticket copy)
    : owner_(owner), first_(first), reactor_(reactor) {
  request_ = first.request();
  deadline = first.deadline;
  ticket = copy;
}

// The dispatcher knows the owner, not the copy.
void GrpcHedge::go_to(Replica& /*replica*/) { CHECK(false); }
void GrpcHedge::on_refused(unsigned /*status*/, std::string_view /*message*/) { CHECK(false); }

Http2Stream::Supply GrpcHedge::supply_request(char* to, std::size_t room) {
  const std::string_view left = owner_.message().substr(sent_);
  const std::size_t bytes = std::min(room, left.size());
  std::memcpy(to, left.data(), bytes);
  sent_ += bytes;
  return {bytes, bytes == left.size() ? Http2Stream::Supply::Then::kEnd
                                      : Http2Stream::Supply::Then::kMore};
}

// Both end with the owner's own call, which this one has become: it is gone by then.
void GrpcHedge::on_reply_data(std::string_view data) {
  GrpcCall& first = first_;
  owner_.on_second_answers(*this);
  first.on_reply_data(data);
}

void GrpcHedge::on_reply_end() {
  if (reply_trailers_.find("grpc-status") != "0") {
    lose(Failure::kStaleConnection);  // an error ends nothing that may still be answered
    return;
  }
  GrpcCall& first = first_;
  owner_.on_second_answers(*this);
  first.on_reply_end();
}

void GrpcHedge::on_lost(Replica& /*replica*/, Failure failure) { lose(failure); }

void GrpcHedge::lose(Failure failure) {
  // It is not queued again: the first copy goes on.
  static_cast<void>(reactor_.dispatcher().failed(reactor_.now(), *ticket, failure));
  owner_.on_second_lost();
}

}  // namespace septet::balance
