#include "measure/edge/grpc_exchange.h"

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "inference/edge/grpc_codec.h"
#include "inference/edge/proto/grpc_service.pb.h"
#include "measure/edge/grpc_query.h"

namespace septet::measure {
namespace {

std::string grpc_target(const os::Endpoint& endpoint) {
  return endpoint.is_unix() ? "unix:" + endpoint.unix_path : endpoint.text();
}

std::shared_ptr<grpc::Channel> channel_to(const os::Endpoint& endpoint) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  return grpc::CreateCustomChannel(grpc_target(endpoint), grpc::InsecureChannelCredentials(),
                                   arguments);
}

std::chrono::system_clock::time_point deadline_in(Duration duration) {
  return std::chrono::system_clock::now() + duration;  // gRPC's deadlines are wall-clock
}

Error nobody_answers(const os::Endpoint& endpoint, const grpc::Status& status) {
  return make_error(
      ErrorKind::kPrecondition,
      fmt::format("nothing answers gRPC at {}: {}", endpoint.text(), status.error_message()),
      "start a server there (septet serve) or name another with -u");
}

// Whether the channel never got through, as opposed to a server that says it is not ready.
bool never_connected(grpc::Channel& channel, const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE &&
         channel.GetState(false) != GRPC_CHANNEL_READY;
}

std::string failed_words(const InferExchange& exchange, const std::string& why) {
  return fmt::format("failed sending {} infer request: {}",
                     exchange.sending == Sending::kOneByOne ? "synchronous" : "asynchronous", why);
}

// Hands an answer on; its blobs live as long as the message.
Result<Ok> deliver(const InferExchange& exchange, std::size_t arrival, std::size_t number,
                   const ::inference::ModelInferResponse& message) {
  const auto response = inference::from_message(message);
  if (!response) {
    return make_error(ErrorKind::kFailed, failed_words(exchange, response.error().message));
  }
  return exchange.on_response(arrival, number, *response);
}

Result<::inference::ModelInferRequest> message_for(const InferExchange& exchange,
                                                   std::size_t number) {
  const Result<inference::InferRequest> request = exchange.make_request(number);
  if (!request) {
    return request.error();
  }
  ::inference::ModelInferRequest message;
  inference::to_message(*request, message);
  return message;
}

// A unary call under way.
struct UnaryCall {
  std::size_t number = 0;
  grpc::ClientContext context;
  ::inference::ModelInferRequest request;
  ::inference::ModelInferResponse response;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<::inference::ModelInferResponse>> reader;
};

class UnaryRunner {
 public:
  explicit UnaryRunner(const InferExchange& exchange)
      : exchange_(exchange), channel_(channel_to(exchange.endpoint)), stub_(channel_) {}

  ~UnaryRunner() {
    for (auto& [call, owner] : calls_) {
      owner->context.TryCancel();
    }
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  UnaryRunner(const UnaryRunner&) = delete;
  UnaryRunner& operator=(const UnaryRunner&) = delete;

  Result<Ok> run() {
    const std::size_t lanes = exchange_.sending == Sending::kOneByOne ? 1 : kMostConnections;
    std::size_t next = 0;
    for (std::size_t arrived = 0; arrived < exchange_.requests; ++arrived) {
      while (next < exchange_.requests && calls_.size() < lanes) {
        SEPTET_TRY(start(next++));
      }
      SEPTET_TRY(take_one(arrived));
    }
    return Ok{};
  }

 private:
  Result<Ok> start(std::size_t number) {
    Result<::inference::ModelInferRequest> message = message_for(exchange_, number);
    if (!message) {
      return message.error();
    }
    auto call = std::make_unique<UnaryCall>();
    call->number = number;
    call->request = std::move(*message);
    call->context.set_deadline(deadline_in(exchange_.timeout));
    call->reader =
        stub_.PrepareUnaryCall(&call->context, grpc_path("ModelInfer"), call->request, &queue_);
    call->reader->StartCall();
    call->reader->Finish(&call->response, &call->status, call.get());
    UnaryCall* key = call.get();
    calls_.emplace(key, std::move(call));
    return Ok{};
  }

  Result<Ok> take_one(std::size_t arrival) {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    const auto found = calls_.find(static_cast<UnaryCall*>(tag));
    const std::unique_ptr<UnaryCall> call = std::move(found->second);
    calls_.erase(found);
    if (!call->status.ok()) {
      if (never_connected(*channel_, call->status)) {
        return nobody_answers(exchange_.endpoint, call->status);
      }
      return make_error(ErrorKind::kFailed, failed_words(exchange_, call->status.error_message()));
    }
    return deliver(exchange_, arrival, call->number, call->response);
  }

  const InferExchange& exchange_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::TemplatedGenericStub<::inference::ModelInferRequest, ::inference::ModelInferResponse> stub_;
  grpc::CompletionQueue queue_;
  std::map<UnaryCall*, std::unique_ptr<UnaryCall>> calls_;
};

// One stream. Every step is waited for before the next, but a write and a read may be under way
// together, so up to kMostConnections requests are in flight.
class StreamRunner {
 public:
  explicit StreamRunner(const InferExchange& exchange)
      : exchange_(exchange), channel_(channel_to(exchange.endpoint)), stub_(channel_) {}

  ~StreamRunner() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  StreamRunner(const StreamRunner&) = delete;
  StreamRunner& operator=(const StreamRunner&) = delete;

  Result<Ok> run() {
    context_.set_deadline(
        deadline_in(exchange_.timeout *
                    static_cast<std::int64_t>(std::max<std::size_t>(exchange_.requests, 1))));
    stream_ = stub_.PrepareCall(&context_, grpc_path("ModelStreamInfer"), &queue_);
    stream_->StartCall(tag_of(Step::kStart));
    if (!wait_for(Step::kStart)) {
      return broken_off();
    }
    SEPTET_TRY(write_next());
    stream_->Read(&response_, tag_of(Step::kRead));
    while (arrived_ < exchange_.requests) {
      void* tag = nullptr;
      bool ok = false;
      queue_.Next(&tag, &ok);
      if (!ok) {
        return broken_off();
      }
      SEPTET_TRY(tag == tag_of(Step::kWrite) ? wrote() : read());
    }
    return Ok{};
  }

 private:
  enum class Step : std::size_t { kStart = 1, kWrite, kRead, kFinish };

  static void* tag_of(Step step) {
    return reinterpret_cast<void*>(step);  // NOLINT: gRPC tags are pointers
  }

  bool wait_for(Step step) {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
      if (tag == tag_of(step)) {
        return ok;
      }
    }
    return false;
  }

  bool may_write() const {
    const std::size_t most = exchange_.sending == Sending::kOneByOne ? 1 : kMostConnections;
    return !writing_ && written_ < exchange_.requests && written_ - arrived_ < most;
  }

  Result<Ok> write_next() {
    if (!may_write()) {
      return Ok{};
    }
    Result<::inference::ModelInferRequest> message = message_for(exchange_, written_);
    if (!message) {
      return message.error();
    }
    request_ = std::move(*message);
    by_id_[request_.id()] = written_++;
    writing_ = true;
    stream_->Write(request_, tag_of(Step::kWrite));
    return Ok{};
  }

  Result<Ok> wrote() {
    writing_ = false;
    return write_next();
  }

  Result<Ok> read() {
    const ::inference::ModelInferResponse& answer = response_.infer_response();
    if (!response_.error_message().empty()) {
      return make_error(ErrorKind::kFailed, failed_words(exchange_, response_.error_message()));
    }
    const auto number = by_id_.find(answer.id());
    if (number == by_id_.end()) {
      return make_error(
          ErrorKind::kFailed,
          failed_words(exchange_, fmt::format("an answer came with the id '{}', which "
                                              "no request has",
                                              answer.id())));
    }
    SEPTET_TRY(deliver(exchange_, arrived_, number->second, answer));
    ++arrived_;
    if (arrived_ < exchange_.requests) {
      stream_->Read(&response_, tag_of(Step::kRead));
    }
    return write_next();
  }

  Error broken_off() {
    grpc::Status status;
    stream_->Finish(&status, tag_of(Step::kFinish));
    wait_for(Step::kFinish);
    if (never_connected(*channel_, status)) {
      return nobody_answers(exchange_.endpoint, status);
    }
    return make_error(ErrorKind::kFailed,
                      failed_words(exchange_, status.ok() ? "the server ended the stream"
                                                          : status.error_message()));
  }

  const InferExchange& exchange_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::TemplatedGenericStub<::inference::ModelInferRequest, ::inference::ModelStreamInferResponse>
      stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<::inference::ModelInferRequest,
                                                ::inference::ModelStreamInferResponse>>
      stream_;
  ::inference::ModelInferRequest request_;
  ::inference::ModelStreamInferResponse response_;
  std::map<std::string, std::size_t> by_id_;
  bool writing_ = false;
  std::size_t written_ = 0;
  std::size_t arrived_ = 0;
};

}  // namespace

Result<Ok> run_grpc_exchange(const InferExchange& exchange, GrpcCalls calls) {
  if (calls == GrpcCalls::kStream) {
    return exchange.requests == 0 ? Result<Ok>(Ok{}) : StreamRunner(exchange).run();
  }
  return UnaryRunner(exchange).run();
}

}  // namespace septet::measure
