// InferCall: one ModelInfer call, from its request to gRPC's last word about it; private to the
// gRPC server. It owns itself: gRPC hands it back in OnDone.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "os/clock.h"
#include "serve/edge/cancellation.h"
#include "serve/edge/model_scheduler.h"
#include "serve/edge/tracer.h"

namespace septet::serve {

class InferCall : public grpc::ServerUnaryReactor {
 public:
  // trace: null for a call that is not traced.
  explicit InferCall(std::shared_ptr<RequestTrace> trace) : trace_(std::move(trace)) {
    mark("GRPC_WAITREAD_END");
  }
  InferContext context() const { return {cancellation_, trace_}; }
  void finish(const grpc::Status& status) {
    mark("GRPC_SEND_START");
    Finish(status);
  }
  void OnCancel() override { cancellation_->cancel(); }
  void OnDone() override {
    mark("GRPC_SEND_END");
    const std::unique_ptr<InferCall> self(this);
  }

 private:
  void mark(std::string_view name) {
    if (trace_) {
      trace_->mark(name, os::now());
    }
  }

  std::shared_ptr<RequestTrace> trace_;
  std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
};

}  // namespace septet::serve
