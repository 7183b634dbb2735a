#include "serve/edge/inference_server.h"

#include <fmt/format.h>

#include "os/clock.h"

namespace septet::serve {

using inference::InferRequest;
using inference::StatusCode;

namespace {

Status status_of(const Error& error) {
  const StatusCode code =
      error.kind == ErrorKind::kNotFound ? StatusCode::kNotFound : StatusCode::kInvalidArgument;
  return Status{code, error.text()};
}

Status with_prefix(const InferRequest& request, const Status& status) {
  return Status{status.code, request_prefix(request) + status.message};
}

}  // namespace

InferenceServer::InferenceServer(InferenceServerOptions options, ModelStore& store)
    : options_(std::move(options)), store_(store) {
  control_thread_ = std::thread([this] { control_.run(); });
}

InferenceServer::~InferenceServer() {
  control_.stop();
  control_thread_.join();
}

std::vector<std::string> InferenceServer::extensions() const {
  return {"classification",     "model_repository", "schedule_policy", "model_configuration",
          "binary_tensor_data", "parameters",       "statistics"};
}

void InferenceServer::load_at_start(std::vector<std::string> names,
                                    std::function<void(const Error&)> on_failure,
                                    std::function<void()> on_started) {
  control_.post([this, names = std::move(names), on_failure = std::move(on_failure),
                 on_started = std::move(on_started)] {
    for (const std::string& name : names) {
      if (const auto loaded = store_.load(name); !loaded.ok()) {
        on_failure(loaded.error());
      }
    }
    started_ = true;
    on_started();
  });
}

bool InferenceServer::is_ready() const {
  return started_ && !draining_ &&
         (options_.readiness == InferenceServerOptions::Readiness::kServer || store_.all_ready());
}

void InferenceServer::infer(InferRequest request, InferDone done) {
  auto job = std::make_unique<InferJob>();
  job->arrival = os::now();
  job->request = std::move(request);
  job->done = std::move(done);
  // A version that is being replaced takes nothing more; the next look-up finds its successor.
  constexpr int kMostLookUps = 3;
  for (int i = 0; i < kMostLookUps; ++i) {
    const Outcome<ModelHandle> model =
        store_.find(job->request.model_name, job->request.model_version);
    if (!model.ok()) {
      job->done(model.error());
      return;
    }
    const Outcome<CheckedRequest> checked = check_request((*model)->config(), job->request);
    if (!checked.ok()) {
      job->done(with_prefix(job->request, checked.error()));
      return;
    }
    job->checked = *checked;
    if ((*model)->scheduler().submit(job)) {
      return;
    }
  }
  job->done(with_prefix(
      job->request,
      inference::unavailable(fmt::format("model '{}' is shutting down", job->request.model_name))));
}

void InferenceServer::load(std::string name, LoadOverride override,
                           std::function<void(Outcome<Ok>)> done) {
  if (options_.control != InferenceServerOptions::Control::kExplicit) {
    done(inference::unavailable(
        "explicit model load / unload is not allowed; start with --model-control-mode=explicit"));
    return;
  }
  control_.post(
      [this, name = std::move(name), override = std::move(override), done = std::move(done)] {
        const auto loaded = store_.load(name, override);
        done(loaded.ok() ? Outcome<Ok>(Ok{}) : Outcome<Ok>(status_of(loaded.error())));
      });
}

void InferenceServer::unload(std::string name, std::function<void(Outcome<Ok>)> done) {
  if (options_.control != InferenceServerOptions::Control::kExplicit) {
    done(inference::unavailable(
        "explicit model load / unload is not allowed; start with --model-control-mode=explicit"));
    return;
  }
  control_.post([this, name = std::move(name), done = std::move(done)] {
    const auto unloaded = store_.unload(name);
    done(unloaded.ok() ? Outcome<Ok>(Ok{}) : Outcome<Ok>(status_of(unloaded.error())));
  });
}

}  // namespace septet::serve
