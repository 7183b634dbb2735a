#include "serve/edge/grpc_server.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <limits>

#include "inference/edge/grpc_codec.h"
#include "inference/edge/proto/health.grpc.pb.h"
#include "serve/edge/grpc_infer_call.h"
#include "serve/edge/grpc_messages.h"
#include "serve/edge/grpc_stream.h"
#include "serve/edge/server_settings.h"

namespace septet::serve {

namespace proto = ::inference;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
using Kind = V2Path::Kind;

namespace {

grpc::Status to_grpc(const Status& status) {
  return {static_cast<grpc::StatusCode>(grpc_status(status.code)), status.message};
}

template <typename T>
grpc::Status to_grpc(const Outcome<T>& outcome) {
  return outcome.ok() ? grpc::Status::OK : to_grpc(outcome.error());
}

class Service : public proto::GRPCInferenceService::CallbackService {
 public:
  Service(InferenceServer& server, Restrictions restrictions)
      : server_(server), restrictions_(std::move(restrictions)) {}

  ServerUnaryReactor* ServerLive(CallbackServerContext* context, const proto::ServerLiveRequest*,
                                 proto::ServerLiveResponse* response) override {
    return answer(context, Kind::kLive, [&] {
      response->set_live(server_.is_live());
      return grpc::Status::OK;
    });
  }

  ServerUnaryReactor* ServerReady(CallbackServerContext* context, const proto::ServerReadyRequest*,
                                  proto::ServerReadyResponse* response) override {
    return answer(context, Kind::kReady, [&] {
      response->set_ready(server_.is_ready());
      return grpc::Status::OK;
    });
  }

  ServerUnaryReactor* ModelReady(CallbackServerContext* context,
                                 const proto::ModelReadyRequest* request,
                                 proto::ModelReadyResponse* response) override {
    return answer(context, Kind::kModelReady, [&] {
      response->set_ready(server_.store().is_ready(request->name(), request->version()));
      return grpc::Status::OK;
    });
  }

  ServerUnaryReactor* ServerMetadata(CallbackServerContext* context,
                                     const proto::ServerMetadataRequest*,
                                     proto::ServerMetadataResponse* response) override {
    return answer(context, Kind::kServerMetadata, [&] {
      response->set_name(server_.options().name);
      response->set_version(server_.options().version);
      for (const std::string& extension : server_.extensions()) {
        response->add_extensions(extension);
      }
      return grpc::Status::OK;
    });
  }

  ServerUnaryReactor* ModelMetadata(CallbackServerContext* context,
                                    const proto::ModelMetadataRequest* request,
                                    proto::ModelMetadataResponse* response) override {
    return answer(context, Kind::kModelMetadata, [&] {
      const auto model = server_.store().find(request->name(), request->version());
      if (!model.ok()) {
        return to_grpc(model.error());
      }
      fill_metadata(server_.store(), **model, *response);
      return grpc::Status::OK;
    });
  }

  ServerUnaryReactor* ModelConfig(CallbackServerContext* context,
                                  const proto::ModelConfigRequest* request,
                                  proto::ModelConfigResponse* response) override {
    return answer(context, Kind::kModelConfig, [&] {
      const auto model = server_.store().find(request->name(), request->version());
      if (model.ok()) {
        *response->mutable_config() = (*model)->document().message();
      }
      return to_grpc(model);
    });
  }

  ServerUnaryReactor* ModelStatistics(CallbackServerContext* context,
                                      const proto::ModelStatisticsRequest* request,
                                      proto::ModelStatisticsResponse* response) override {
    return answer(context, Kind::kModelStatistics, [&] {
      const auto models = server_.statistics_of(request->name(), request->version());
      if (models.ok()) {
        for (const ModelHandle& handle : *models) {
          proto::ModelStatistics& stats = *response->add_model_stats();
          stats.set_name(handle->config().name);
          stats.set_version(handle->version());
          fill_statistics(handle->scheduler().statistics(), stats);
        }
      }
      return to_grpc(models);
    });
  }

  ServerUnaryReactor* ModelInfer(CallbackServerContext* context,
                                 const proto::ModelInferRequest* message,
                                 proto::ModelInferResponse* response) override {
    if (const grpc::Status denied = check(context, Kind::kInfer); !denied.ok()) {
      return finish(context, denied);
    }
    auto request = inference::from_message(*message);
    if (!request.ok()) {
      return finish(context, to_grpc(request.error()));
    }
    // It owns itself; gRPC keeps message and response until it is finished.
    InferCall* reactor =
        std::make_unique<InferCall>(server_.tracer().begin(message->model_name())).release();
    server_.infer(
        std::move(*request),
        [reactor, response](const Outcome<inference::InferResponse>& answered) {
          if (answered.ok()) {
            inference::to_message(*answered, *response);
          }
          reactor->finish(to_grpc(answered));
        },
        reactor->context());
    return reactor;
  }

  grpc::ServerBidiReactor<proto::ModelInferRequest, proto::ModelStreamInferResponse>*
  ModelStreamInfer(CallbackServerContext* context) override {
    if (const grpc::Status denied = check(context, Kind::kInfer); !denied.ok()) {
      return std::make_unique<DeniedStream>(denied).release();
    }
    return std::make_unique<InferStream>(server_).release();
  }

  ServerUnaryReactor* RepositoryIndex(CallbackServerContext* context,
                                      const proto::RepositoryIndexRequest* request,
                                      proto::RepositoryIndexResponse* response) override {
    return answer(context, Kind::kRepositoryIndex, [&] {
      for (const IndexEntry& entry : server_.store().index(request->ready())) {
        auto& model = *response->add_models();
        model.set_name(entry.name);
        model.set_version(entry.version);
        model.set_state(entry.state);
        model.set_reason(entry.reason);
      }
      return grpc::Status::OK;
    });
  }

  ServerUnaryReactor* RepositoryModelLoad(CallbackServerContext* context,
                                          const proto::RepositoryModelLoadRequest* request,
                                          proto::RepositoryModelLoadResponse*) override {
    grpc::Status refused = check(context, Kind::kRepositoryLoad);
    LoadOverride override;
    for (const auto& [name, value] : request->parameters()) {
      if (name == "config") {
        override.config_json = value.string_param();
      } else if (name.starts_with(kFilePrefix)) {
        override.files[name.substr(kFilePrefix.size())] = value.bytes_param();
      } else if (refused.ok()) {
        refused = to_grpc(inference::invalid_argument(fmt::format(
            "unsupported load parameter '{}'; 'config' and 'file:VERSION/NAME' are known", name)));
      }
    }
    if (!refused.ok()) {
      return finish(context, refused);
    }
    ServerUnaryReactor* reactor = context->DefaultReactor();
    server_.load(request->model_name(), std::move(override),
                 [reactor](const Outcome<Ok>& done) { reactor->Finish(to_grpc(done)); });
    return reactor;
  }

  ServerUnaryReactor* RepositoryModelUnload(CallbackServerContext* context,
                                            const proto::RepositoryModelUnloadRequest* request,
                                            proto::RepositoryModelUnloadResponse*) override {
    if (const grpc::Status denied = check(context, Kind::kRepositoryUnload); !denied.ok()) {
      return finish(context, denied);
    }
    ServerUnaryReactor* reactor = context->DefaultReactor();
    server_.unload(request->model_name(),
                   [reactor](const Outcome<Ok>& done) { reactor->Finish(to_grpc(done)); });
    return reactor;
  }

  ServerUnaryReactor* SystemSharedMemoryStatus(
      CallbackServerContext* context, const proto::SystemSharedMemoryStatusRequest* request,
      proto::SystemSharedMemoryStatusResponse* response) override {
    return answer(context, Kind::kSystemMemoryStatus, [&] {
      const auto regions = server_.memory().status(request->name());
      if (regions.ok()) {
        for (const SharedMemoryStatus& region : *regions) {
          auto& to = (*response->mutable_regions())[region.name];
          to.set_name(region.name);
          to.set_key(region.key);
          to.set_offset(region.offset);
          to.set_byte_size(region.byte_size);
        }
      }
      return to_grpc(regions);
    });
  }

  ServerUnaryReactor* SystemSharedMemoryRegister(
      CallbackServerContext* context, const proto::SystemSharedMemoryRegisterRequest* request,
      proto::SystemSharedMemoryRegisterResponse*) override {
    return answer(context, Kind::kSystemMemoryRegister, [&] {
      return to_grpc(server_.register_memory(
          {request->name(), request->key(), request->offset(), request->byte_size()}));
    });
  }

  ServerUnaryReactor* SystemSharedMemoryUnregister(
      CallbackServerContext* context, const proto::SystemSharedMemoryUnregisterRequest* request,
      proto::SystemSharedMemoryUnregisterResponse*) override {
    return answer(context, Kind::kSystemMemoryUnregister, [&] {
      const V2Path path{.kind = Kind::kSystemMemoryUnregister, .region = request->name()};
      return to_grpc(system_memory_call(server_, path, ""));
    });
  }

  ServerUnaryReactor* CudaSharedMemoryStatus(CallbackServerContext* context,
                                             const proto::CudaSharedMemoryStatusRequest* request,
                                             proto::CudaSharedMemoryStatusResponse*) override {
    return cuda(context, Kind::kCudaMemoryStatus, request->name());
  }

  ServerUnaryReactor* CudaSharedMemoryRegister(
      CallbackServerContext* context, const proto::CudaSharedMemoryRegisterRequest* request,
      proto::CudaSharedMemoryRegisterResponse*) override {
    return cuda(context, Kind::kCudaMemoryRegister, request->name());
  }

  ServerUnaryReactor* CudaSharedMemoryUnregister(
      CallbackServerContext* context, const proto::CudaSharedMemoryUnregisterRequest* request,
      proto::CudaSharedMemoryUnregisterResponse*) override {
    return cuda(context, Kind::kCudaMemoryUnregister, request->name());
  }

  ServerUnaryReactor* TraceSetting(CallbackServerContext* context,
                                   const proto::TraceSettingRequest* request,
                                   proto::TraceSettingResponse* response) override {
    return answer(context, Kind::kTraceSetting, [&] {
      const V2Path path{.kind = Kind::kTraceSetting, .model = request->model_name()};
      const auto text = trace_call(server_, path, settings_json(request->settings()));
      if (text.ok()) {
        fill_settings(*text, *response);
      }
      return to_grpc(text);
    });
  }

  ServerUnaryReactor* LogSettings(CallbackServerContext* context,
                                  const proto::LogSettingsRequest* request,
                                  proto::LogSettingsResponse* response) override {
    return answer(context, Kind::kLogging, [&] {
      const auto text = logging_call(server_.log(), settings_json(request->settings()));
      if (text.ok()) {
        fill_settings(*text, *response);
      }
      return to_grpc(text);
    });
  }

 private:
  grpc::Status check(CallbackServerContext* context, Kind kind) const {
    const auto missing = restrictions_.missing_header(kind, [&](const std::string& name) {
      const auto& metadata = context->client_metadata();
      const auto found = metadata.find("triton-grpc-protocol-" + name);
      return found == metadata.end()
                 ? std::nullopt
                 : std::optional(std::string_view(found->second.data(), found->second.size()));
    });
    if (!missing) {
      return grpc::Status::OK;
    }
    return {grpc::StatusCode::UNAVAILABLE,
            fmt::format("This protocol is restricted, expecting header 'triton-grpc-protocol-{}'",
                        *missing)};
  }

  static ServerUnaryReactor* finish(CallbackServerContext* context, const grpc::Status& status) {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(status);
    return reactor;
  }

  // A call that is answered at once.
  template <typename Fill>
  ServerUnaryReactor* answer(CallbackServerContext* context, Kind kind, Fill&& fill) {
    const grpc::Status denied = check(context, kind);
    return finish(context, denied.ok() ? fill() : denied);
  }

  ServerUnaryReactor* cuda(CallbackServerContext* context, Kind kind, const std::string& region) {
    return answer(context, kind, [&] {
      return to_grpc(cuda_memory_call(V2Path{.kind = kind, .region = region}));
    });
  }

  InferenceServer& server_;
  Restrictions restrictions_;
};

class HealthService : public grpc::health::v1::Health::CallbackService {
 public:
  explicit HealthService(const InferenceServer& server) : server_(server) {}

  ServerUnaryReactor* Check(CallbackServerContext* context,
                            const grpc::health::v1::HealthCheckRequest*,
                            grpc::health::v1::HealthCheckResponse* response) override {
    response->set_status(server_.is_ready() ? grpc::health::v1::HealthCheckResponse::SERVING
                                            : grpc::health::v1::HealthCheckResponse::NOT_SERVING);
    ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const InferenceServer& server_;
};

class RunningServer : public GrpcServer {
 public:
  RunningServer(InferenceServer& server, const GrpcServerOptions& options)
      : service_(server, options.restrictions), health_(server), endpoint_(options.endpoint) {}

  Result<Ok> start(const GrpcServerOptions& options) {
    grpc::ServerBuilder builder;
    int port = 0;
    const std::string address =
        endpoint_.is_unix() ? "unix:" + endpoint_.unix_path
                            : fmt::format("{}:{}", endpoint_.host.empty() ? "[::]" : endpoint_.host,
                                          endpoint_.port);
    std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
    if (!options.certificate.empty()) {
      grpc::SslServerCredentialsOptions tls;
      tls.pem_key_cert_pairs.push_back({options.private_key, options.certificate});
      credentials = grpc::SslServerCredentials(tls);
    }
    builder.AddListeningPort(address, credentials, &port);
    builder.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
    builder.SetMaxSendMessageSize(std::numeric_limits<int>::max());
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.RegisterService(&service_);
    builder.RegisterService(&health_);
    server_ = builder.BuildAndStart();
    if (!server_ || (port == 0 && !endpoint_.is_unix())) {
      return make_error(ErrorKind::kPrecondition, fmt::format("cannot listen on {}", address),
                        "choose another port with --grpc-port, or 0 for any free one");
    }
    endpoint_.port = static_cast<std::uint16_t>(port);
    return Ok{};
  }

  const os::Endpoint& endpoint() const override { return endpoint_; }

  void shutdown(Duration longest) override {
    server_->Shutdown(std::chrono::system_clock::now() +
                      std::chrono::duration_cast<std::chrono::system_clock::duration>(longest));
  }

 private:
  Service service_;
  HealthService health_;
  os::Endpoint endpoint_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

Result<std::unique_ptr<GrpcServer>> GrpcServer::start(InferenceServer& server,
                                                      const GrpcServerOptions& options) {
  auto running = std::make_unique<RunningServer>(server, options);
  SEPTET_TRY(running->start(options));
  return std::unique_ptr<GrpcServer>(std::move(running));
}

}  // namespace septet::serve
