// FanOut: one request of a client put to every replica, the replies merged into one.
//
// Owned by the client's connection or call while it waits. Replicas that are not up are left out;
// with none up the answer is 503. How replies are merged depends on the route: balance/merge.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "balance/edge/exchange.h"
#include "balance/merge.h"
#include "balance/route.h"

namespace septet::balance {

class Reactor;

class FanOut {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // May destroy the fan-out.
    virtual void on_merged(const MergedReply& reply) = 0;
  };
  // The bytes stay the owner's, which outlives this.
  struct Question {
    std::string_view head;
    std::string_view body;
    bool is_head_request = false;
    Instant deadline{};
  };
  FanOut(Reactor& reactor, Owner& owner, const Route& route, const Question& question);
  ~FanOut();
  FanOut(const FanOut&) = delete;
  FanOut& operator=(const FanOut&) = delete;

  void start();

 private:
  // One replica's share; keeps its reply until all have come.
  struct Branch final : ReplySink {
    Branch(FanOut& owner, std::string replica_name)
        : fan_out(owner), name(std::move(replica_name)), exchange(*this) {}
    void on_whole_reply(const WholeReply& whole) override;
    void on_reply_head(const inference::HttpHead& head) override;
    Flow on_reply_data(std::string_view data, std::string_view wire) override;
    void on_reply_end() override;
    void on_no_reply(unsigned status, std::string_view message) override;
    FanOut& fan_out;
    std::string name;
    Exchange exchange;
    ReplicaReply reply;
  };

  void branch_done();
  void finish();
  MergedReply statistics(const std::vector<ReplicaReply>& replies);

  Reactor& reactor_;
  Owner& owner_;
  Route route_;
  Question question_;
  std::vector<std::unique_ptr<Branch>> branches_;
  std::size_t missing_ = 0;
};

}  // namespace septet::balance
