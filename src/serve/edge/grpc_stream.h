// InferStream: one ModelStreamInfer call; private to the gRPC server.
//
//   read request --> infer --> answers in the order of the requests --> write
//
// Errors are answers too: they do not end the stream. At most kMostInFlight requests are in flight;
// reading pauses until there is room.
#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include "inference/edge/proto/grpc_service.grpc.pb.h"
#include "serve/edge/inference_server.h"

namespace septet::serve {

class InferStream : public grpc::ServerBidiReactor<::inference::ModelInferRequest,
                                                   ::inference::ModelStreamInferResponse> {
 public:
  explicit InferStream(InferenceServer& server);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  static constexpr std::size_t kMostInFlight = 256;

  struct Exchange {
    ::inference::ModelInferRequest request{};
    ::inference::ModelStreamInferResponse response{};
    std::shared_ptr<Cancellation> cancellation = std::make_shared<Cancellation>();
    std::shared_ptr<RequestTrace> trace{};
    bool final_wanted = false;
    bool answered = false;
  };

  void read_next();
  void start(Exchange& exchange);
  void answer(Exchange& exchange, const Outcome<inference::InferResponse>& response);
  void advance(std::unique_lock<std::mutex>& lock);

  InferenceServer& server_;
  std::mutex mutex_;
  std::deque<std::unique_ptr<Exchange>> exchanges_;  // the front's answer is written next
  std::unique_ptr<Exchange> reading_;
  bool read_ended_ = false;
  bool read_paused_ = false;
  bool writing_ = false;
  bool write_failed_ = false;
  bool finished_ = false;
};

// A call that is refused before its first request.
class DeniedStream : public grpc::ServerBidiReactor<::inference::ModelInferRequest,
                                                    ::inference::ModelStreamInferResponse> {
 public:
  explicit DeniedStream(const grpc::Status& status) { Finish(status); }
  void OnDone() override { const std::unique_ptr<DeniedStream> self(this); }
};

}  // namespace septet::serve
