// InferCall: one ModelInfer call, from its request to gRPC's last word about it; private to the
// gRPC server. It owns itself: gRPC hands it back in OnDone.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "serve/edge/cancellation.h"

namespace septet::serve {

class InferCall : public grpc::ServerUnaryReactor {
 public:
  const std::shared_ptr<Cancellation>& cancellation() const { return cancellation_; }
  void OnCancel() override { cancellation_->cancel(); }
  void OnDone() override { const std::unique_ptr<InferCall> self(this); }

 private:
  std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
};

}  // namespace septet::serve
