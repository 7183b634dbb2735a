#include "balance/edge/grpc_slot_call.h"

#include "balance/edge/reactor.h"
#include "base/check.h"
#include "inference/slot_call.h"
#include "inference/slot_message.h"

namespace septet::balance {

void GrpcSlotCall::send(Replica& replica, const Message& message, const Dispatched& call) {
  CHECK(!in_flight() && replica.takes_slot_calls());
  reply_.release();
  grpc_status_.clear();
  too_large_ = false;
  exchange_.ticket = call.ticket;
  exchange_.sequence = call.sequence;
  exchange_.deadline = call.deadline;
  exchange_.body = message.bytes;
  exchange_.slot = &message.slot;
  exchange_.slot_head.assign("POST ").append(inference::kSlotCallTarget);
  exchange_.slot_head.append(" HTTP/1.1\r\nHost: localhost\r\nUser-Agent: septet\r\n");
  exchange_.slot_head.append(inference::kSlotField).append(": ");
  inference::append_slot_message(
      exchange_.slot_head, {message.slot.pool().region_bytes(), message.slot.offset() + message.at,
                            message.bytes.size()});
  exchange_.slot_head += "\r\nContent-Length: 0\r\n\r\n";
  replica.send(exchange_);
}

void GrpcSlotCall::abandon() {
  if (in_flight()) {
    reactor_.abandon(exchange_);
  }
}

void GrpcSlotCall::on_whole_reply(const WholeReply& reply) {
  owner_.on_slot_answer(reply.head.find(inference::kGrpcStatusField).value_or(""), reply.body);
}

void GrpcSlotCall::on_reply_head(const inference::HttpHead& head) {
  grpc_status_ = head.find(inference::kGrpcStatusField).value_or("");
}

ReplySink::Flow GrpcSlotCall::on_reply_data(std::string_view data, std::string_view /*wire*/) {
  too_large_ |= !reply_.append(reactor_.bodies(), data, BodyPool::For::kReply);
  return Flow::kGoOn;
}

void GrpcSlotCall::on_reply_end() {
  if (too_large_) {
    owner_.on_slot_call_lost(413, "the proxy has no memory left for this reply");
  } else {
    owner_.on_slot_answer(grpc_status_, reply_.all());
  }
}

void GrpcSlotCall::on_no_reply(unsigned status, std::string_view message) {
  owner_.on_slot_call_lost(status, message);
}

}  // namespace septet::balance
