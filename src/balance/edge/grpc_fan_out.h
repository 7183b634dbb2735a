// GrpcFanOut: one gRPC call put to every replica; one reply of them goes back.
//
// Owned by the client's stream while it waits. Replicas that are not up or speak no gRPC are left
// out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "balance/edge/grpc_call.h"
#include "balance/grpc_route.h"

namespace septet::balance {

class Reactor;

struct GrpcReply {
  FieldList head;
  std::string data;
  FieldList trailers;
  bool whole = false;  // else there was none

  std::string_view status() const;
};

class GrpcFanOut {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // Destroys the fan-out, or keeps it without a call to it.
    virtual void on_merged_call(const GrpcReply& reply) = 0;
  };
  // kFirst: the first success, else the first error. kAll: a success if all succeeded, else the
  // first error.
  enum class Rule { kFirst, kAll };

  // The message stays the owner's, which outlives this.
  GrpcFanOut(Reactor& reactor, Owner& owner, Rule rule, const GrpcCall& call,
             std::string_view message);
  ~GrpcFanOut();
  GrpcFanOut(const GrpcFanOut&) = delete;
  GrpcFanOut& operator=(const GrpcFanOut&) = delete;

  void start();

 private:
  class Branch;
  void branch_done();
  const GrpcReply& choose() const;

  Reactor& reactor_;
  Owner& owner_;
  Rule rule_;
  const GrpcCall& call_;
  std::string_view message_;
  std::vector<std::unique_ptr<Branch>> branches_;
  std::size_t missing_ = 0;
};

}  // namespace septet::balance
