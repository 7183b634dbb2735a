#include "support/simulated_grpc_server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <mutex>
#include <set>
#include <utility>

#include "base/check.h"
#include "inference/edge/proto/grpc_service.pb.h"

namespace septet::test {

namespace {

constexpr const char* kModel = "simulated";

std::string text_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  CHECK(buffer.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

grpc::ByteBuffer buffer_of(const google::protobuf::Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

class SimulatedGrpcServer::Impl final : public grpc::CallbackGenericService {
 public:
  explicit Impl(std::function<bool(std::uint64_t)> fails) : fails_(std::move(fails)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
    CHECK(server_ != nullptr && port_ > 0);
  }
  ~Impl() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  // The answer to a call of one message; nothing = UNAVAILABLE.
  std::optional<grpc::ByteBuffer> answer(const std::string& method, const std::string& request);
  std::optional<grpc::ByteBuffer> infer(const std::string& request, bool stream);
  void note_call(const grpc::GenericCallbackServerContext& context);

  std::function<bool(std::uint64_t)> fails_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::atomic<std::uint64_t> requests_ = 0;
  std::atomic<std::uint64_t> calls_ = 0;
  std::mutex mutex_;  // guards the four below
  std::string last_input_;
  std::string last_region_;
  std::set<std::string> regions_;
  std::string last_team_;
};

namespace {

// Answers the messages of one call, one after another.
template <typename Server>
class Call final : public grpc::ServerGenericBidiReactor {
 public:
  Call(Server& server, std::string method)
      : server_(server),
        method_(std::move(method)),
        stream_(method_.ends_with("/ModelStreamInfer")) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::OK);
      return;
    }
    std::optional<grpc::ByteBuffer> answer = stream_ ? server_.infer(text_of(request_), true)
                                                     : server_.answer(method_, text_of(request_));
    if (!answer) {
      Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "simulated refusal"));
      return;
    }
    response_ = *std::move(answer);
    if (stream_) {
      StartWrite(&response_);
    } else {
      StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
    }
  }
  void OnWriteDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::OK);
    } else if (stream_) {
      StartRead(&request_);
    }
  }
  void OnDone() override { delete this; }  // gRPC's contract: the reactor owns itself

 private:
  Server& server_;
  std::string method_;
  bool stream_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
};

}  // namespace

grpc::ServerGenericBidiReactor* SimulatedGrpcServer::Impl::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  if (context->method().find("Infer") != std::string::npos &&
      (context->method().ends_with("/ModelInfer") ||
       context->method().ends_with("/ModelStreamInfer"))) {
    note_call(*context);
  }
  return new Call<Impl>(*this, context->method());
}

void SimulatedGrpcServer::Impl::note_call(const grpc::GenericCallbackServerContext& context) {
  ++calls_;
  const auto team = context.client_metadata().find("x-team");
  const std::lock_guard lock(mutex_);
  last_team_ = team == context.client_metadata().end()
                   ? ""
                   : std::string(team->second.data(), team->second.size());
}

std::optional<grpc::ByteBuffer> SimulatedGrpcServer::Impl::infer(const std::string& request,
                                                                 bool stream) {
  ::inference::ModelInferRequest message;
  CHECK(message.ParseFromString(request));
  const std::uint64_t index = requests_.fetch_add(1);
  {
    const std::lock_guard lock(mutex_);
    last_input_ = message.raw_input_contents_size() > 0 ? message.raw_input_contents(0) : "";
    last_region_.clear();
    for (const auto& input : message.inputs()) {
      const auto region = input.parameters().find("shared_memory_region");
      if (region != input.parameters().end()) {
        last_region_ = region->second.string_param();
      }
    }
  }
  const bool fails = fails_ && fails_(index);
  if (!stream && fails) {
    return std::nullopt;
  }
  ::inference::ModelStreamInferResponse streamed;
  if (fails) {
    streamed.set_error_message("simulated refusal");
    return buffer_of(streamed);
  }
  ::inference::ModelInferResponse& response = *streamed.mutable_infer_response();
  response.set_model_name(kModel);
  response.add_raw_output_contents(std::string(64, 'x'));
  return stream ? buffer_of(streamed) : buffer_of(response);
}

std::optional<grpc::ByteBuffer> SimulatedGrpcServer::Impl::answer(const std::string& method,
                                                                  const std::string& request) {
  const std::string name = method.substr(method.rfind('/') + 1);
  if (name == "ModelInfer") {
    return infer(request, false);
  }
  if (name == "SystemSharedMemoryRegister") {
    ::inference::SystemSharedMemoryRegisterRequest region;
    CHECK(region.ParseFromString(request));
    const std::lock_guard lock(mutex_);
    regions_.insert(region.name());
    return buffer_of(::inference::SystemSharedMemoryRegisterResponse());
  }
  if (name == "SystemSharedMemoryUnregister") {
    ::inference::SystemSharedMemoryUnregisterRequest gone;
    CHECK(gone.ParseFromString(request));
    const std::lock_guard lock(mutex_);
    regions_.erase(gone.name());
    return buffer_of(::inference::SystemSharedMemoryUnregisterResponse());
  }
  if (name == "ServerMetadata") {
    ::inference::ServerMetadataResponse response;
    response.set_name("simulated");
    response.add_extensions("statistics");
    return buffer_of(response);
  }
  if (name == "ModelMetadata") {
    ::inference::ModelMetadataResponse response;
    response.set_name(kModel);
    response.add_versions("1");
    auto& input = *response.add_inputs();
    input.set_name("IN");
    input.set_datatype("INT32");
    input.add_shape(-1);
    input.add_shape(16);
    auto& output = *response.add_outputs();
    output = {};
    output.set_name("OUT");
    output.set_datatype("INT32");
    output.add_shape(-1);
    output.add_shape(16);
    return buffer_of(response);
  }
  if (name == "ModelConfig") {
    ::inference::ModelConfigResponse response;
    response.mutable_config()->set_name(kModel);
    response.mutable_config()->set_max_batch_size(8);
    return buffer_of(response);
  }
  if (name == "ModelStatistics") {
    ::inference::ModelStatisticsResponse response;
    auto& statistics = *response.add_model_stats();
    statistics.set_name(kModel);
    statistics.set_version("1");
    statistics.set_inference_count(requests_);
    statistics.mutable_inference_stats()->mutable_queue()->set_count(requests_);
    statistics.mutable_inference_stats()->mutable_queue()->set_ns(requests_ * 3000);
    return buffer_of(response);
  }
  return std::nullopt;
}

SimulatedGrpcServer::SimulatedGrpcServer(std::function<bool(std::uint64_t)> fails)
    : impl_(std::make_unique<Impl>(std::move(fails))) {}
SimulatedGrpcServer::~SimulatedGrpcServer() = default;

os::Endpoint SimulatedGrpcServer::endpoint() const {
  return os::Endpoint{"127.0.0.1", static_cast<std::uint16_t>(impl_->port_), ""};
}
std::uint64_t SimulatedGrpcServer::requests() const { return impl_->requests_; }
std::uint64_t SimulatedGrpcServer::calls() const { return impl_->calls_; }
std::string SimulatedGrpcServer::last_input() const {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->last_input_;
}
std::string SimulatedGrpcServer::last_region() const {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->last_region_;
}
std::size_t SimulatedGrpcServer::regions() const {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->regions_.size();
}
std::string SimulatedGrpcServer::last_team() const {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->last_team_;
}

}  // namespace septet::test
