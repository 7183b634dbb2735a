// SideChannel: the proxy's own questions to one replica, one at a time.
//
// Owned by Replica. Probes, model configs and statistics go this way; they take no place in the
// dispatcher. A question ends with an answer, or with status 0 when there is none.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "balance/edge/exchange.h"

namespace septet::balance {

class Replica;
class Reactor;

class SideChannel final : public ReplySink {
 public:
  using Answer = std::function<void(unsigned status, std::string_view body)>;

  SideChannel(Reactor& reactor, Replica& replica)
      : reactor_(reactor), replica_(replica), exchange_(*this) {}

  // GET of the target.
  void ask(std::string_view target, Answer answer) {
    put({"GET", std::string(target), {}, std::move(answer)});
  }
  // POST of the JSON to the target.
  void tell(std::string_view target, std::string json, Answer answer) {
    put({"POST", std::string(target), std::move(json), std::move(answer)});
  }
  bool busy() const { return asking_; }
  // Whether the last answer said that the replica reads bodies in slots. It is asked on Unix
  // sockets.
  bool grants_slots() const { return grants_slots_; }
  // And gRPC's calls.
  bool grants_slot_calls() const { return grants_slots_ && grants_slot_calls_; }
  // How long the last answer took to come.
  Duration took() const { return took_; }

  void on_whole_reply(const WholeReply& reply) override;
  void on_reply_head(const inference::HttpHead& head) override;
  Flow on_reply_data(std::string_view data, std::string_view wire) override;
  void on_reply_end() override;
  void on_no_reply(unsigned status, std::string_view message) override;

 private:
  struct Question {
    std::string_view method;
    std::string target;
    std::string json;
    Answer answer;
  };
  void put(Question question);
  void next();
  void answered(unsigned status);

  Reactor& reactor_;
  Replica& replica_;
  Exchange exchange_;
  std::deque<Question> questions_;
  bool asking_ = false;
  bool grants_slots_ = false;
  bool grants_slot_calls_ = false;
  Instant asked_{};
  Duration took_{};
  unsigned status_ = 0;
  std::string body_;
};

}  // namespace septet::balance
