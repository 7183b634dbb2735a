#include "balance/edge/side_channel.h"

#include "balance/edge/reactor.h"
#include "inference/slot_call.h"
#include "inference/slot_message.h"

namespace septet::balance {

namespace {

constexpr Duration kTimeout = seconds(2);
constexpr std::size_t kMaxQuestions = 1024;
constexpr std::size_t kMaxBodyBytes = 16ULL << 20U;

}  // namespace

void SideChannel::put(Question question) {
  if (questions_.size() >= kMaxQuestions) {
    question.answer(0, {});
    return;
  }
  questions_.push_back(std::move(question));
  if (!asking_) {
    next();
  }
}

void SideChannel::next() {
  if (questions_.empty()) {
    return;
  }
  asking_ = true;
  status_ = 0;
  body_.clear();
  const Question& question = questions_.front();
  exchange_.head.assign(question.method).append(" ").append(question.target);
  exchange_.head += " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: septet\r\n";
  if (question.method == "POST") {
    exchange_.head += "Content-Type: application/json\r\nContent-Length: " +
                      std::to_string(question.json.size()) + "\r\n";
  }
  exchange_.body = question.json;
  if (reactor_.options().slots && replica_.upstream().endpoint.is_unix()) {
    exchange_.head.append(inference::kSlotsField).append(": ").append(inference::kSlotsVersion);
    exchange_.head.append("\r\n").append(inference::kSlotCallsField).append(": ");
    exchange_.head.append(inference::kSlotsVersion).append("\r\n");
  }
  exchange_.head += "\r\n";
  grants_slots_ = false;
  exchange_.tried_again = false;
  asked_ = reactor_.now();
  exchange_.deadline = asked_ + kTimeout;
  replica_.send(exchange_);
}

void SideChannel::answered(unsigned status) {
  const Question question = std::move(questions_.front());
  questions_.pop_front();
  asking_ = false;
  took_ = reactor_.now() - asked_;
  question.answer(status, body_);
  if (!asking_) {
    next();
  }
}

void SideChannel::on_whole_reply(const WholeReply& reply) {
  status_ = reply.head.status;
  grants_slots_ = reactor_.options().slots && replica_.upstream().endpoint.is_unix() &&
                  reply.head.find(inference::kSlotsField) == inference::kSlotsVersion;
  grants_slot_calls_ = reply.head.find(inference::kSlotCallsField) == inference::kSlotsVersion;
  body_ = reply.body.substr(0, kMaxBodyBytes);
  answered(status_);
}

void SideChannel::on_reply_head(const inference::HttpHead& head) { status_ = head.status; }

ReplySink::Flow SideChannel::on_reply_data(std::string_view data, std::string_view /*wire*/) {
  body_ += data.substr(0, kMaxBodyBytes - body_.size());
  return Flow::kGoOn;
}

void SideChannel::on_reply_end() { answered(status_); }

void SideChannel::on_no_reply(unsigned /*status*/, std::string_view /*message*/) { answered(0); }

}  // namespace septet::balance
