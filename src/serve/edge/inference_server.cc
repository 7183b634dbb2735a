#include "serve/edge/inference_server.h"

#include <fmt/format.h>

#include <algorithm>

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

bool uses_shared_outputs(const InferRequest& request) {
  return std::any_of(request.outputs.begin(), request.outputs.end(),
                     [](const auto& output) { return output.shared.has_value(); });
}

Status with_prefix(const InferRequest& request, const Status& status) {
  return Status{status.code, request_prefix(request) + status.message};
}

}  // namespace

InferenceServer::InferenceServer(InferenceServerOptions options, ModelStore& store)
    : options_(std::move(options)),
      store_(store),
      tracer_(std::make_shared<Tracer>(options_.trace,
                                       [this](const Error& error) { log_.error(error.text()); })),
      cache_(options_.cache_bytes) {
  control_thread_ = std::thread([this] { control_.run(); });
}

InferenceServer::~InferenceServer() {
  control_.stop();
  control_thread_.join();
  tracer_->close();
}

std::vector<std::string> InferenceServer::extensions() const {
  return {"classification",
          "sequence",
          "model_repository",
          "model_repository(unload_dependents)",
          "schedule_policy",
          "model_configuration",
          "system_shared_memory",
          "binary_tensor_data",
          "parameters",
          "statistics",
          "trace",
          "logging"};
}

void InferenceServer::load_at_start(std::vector<std::string> names,
                                    std::function<void()> on_started) {
  control_.post([this, names = std::move(names), on_started = std::move(on_started)] {
    for (const std::string& name : names) {
      if (const auto loaded = store_.load(name); !loaded.ok()) {
        log_.error(loaded.error().text());
        const auto found = store_.find(name, "");
        if (!found.ok() && found.error().code == StatusCode::kNotFound) {
          model_missing_ = true;
        }
      }
    }
    started_ = true;
    on_started();
  });
}

void InferenceServer::follow_repository(Duration every, std::function<void()> on_started) {
  control_.post([this, every, on_started = std::move(on_started)] {
    for (const Error& error : store_.follow_repository()) {
      log_.error(error.text());
    }
    if (!started_.exchange(true)) {
      on_started();
    }
    control_.call_after(every, [this, every] { follow_repository(every, [] {}); });
  });
}

bool InferenceServer::is_ready() const {
  if (!started_ || draining_) {
    return false;
  }
  return options_.readiness == InferenceServerOptions::Readiness::kServer ||
         (!model_missing_ && store_.all_ready());
}

Outcome<std::vector<ModelHandle>> InferenceServer::statistics_of(const std::string& name,
                                                                 const std::string& version) const {
  std::vector<ModelHandle> models = store_.loaded();
  if (!name.empty()) {
    const auto model = store_.find(name, version);
    SEPTET_TRY(model);
    std::erase_if(models, [&](const ModelHandle& handle) {
      return handle->config().name != name ||
             (!version.empty() && handle->version() != (*model)->version());
    });
  }
  return models;
}

Outcome<Ok> InferenceServer::register_memory(const SharedMemoryStatus& region) {
  if (!options_.allow_client_shared_memory) {
    return inference::unsupported(
        "registering shared memory is not allowed; start with --allow-client-shm=true");
  }
  return memory_.register_region(region);
}

void InferenceServer::infer(InferRequest request, InferDone done, InferContext context) {
  if (const auto resolved = memory_.resolve_inputs(request); !resolved.ok()) {
    done(with_prefix(request, resolved.error()));
    return;
  }
  if (const auto checked = memory_.check_outputs(request); !checked.ok()) {
    done(with_prefix(request, checked.error()));
    return;
  }
  if (uses_shared_outputs(request)) {
    done = [this, next = std::move(done)](Outcome<inference::InferResponse> response) {
      if (response.ok()) {
        if (const auto written = memory_.write_outputs(*response); !written.ok()) {
          next(written.error());
          return;
        }
      }
      next(std::move(response));
    };
  }
  auto job = std::make_unique<InferJob>();
  job->arrival = os::now();
  job->request = std::move(request);
  job->done = std::move(done);
  job->context = std::move(context);
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
    if (job->context.trace && i == 0) {
      begin_trace(*model, *job);
    }
    if (start(*model, job) == Started::kYes) {
      return;
    }
  }
  job->done(with_prefix(
      job->request,
      inference::unavailable(fmt::format("model '{}' is shutting down", job->request.model_name))));
}

void InferenceServer::begin_trace(const ModelHandle& model, InferJob& job) {
  RequestTrace& trace = *job.context.trace;
  trace.describe(model->config().name, model->version_number(), job.request.id);
  trace.mark("REQUEST_START", job.arrival);
  trace.mark("QUEUE_START", os::now());
  job.done = [trace = job.context.trace,
              next = std::move(job.done)](Outcome<inference::InferResponse> response) {
    // Before the answer goes on its way: another thread may mark the next step.
    const Instant now = os::now();
    trace->mark("INFER_RESPONSE_COMPLETE", now);
    trace->mark("REQUEST_END", now);
    next(std::move(response));
  };
}

InferenceServer::Started InferenceServer::start(const ModelHandle& model,
                                                std::unique_ptr<InferJob>& job) {
  const std::shared_ptr<Cancellation> cancellation = job->context.cancellation;
  if (cancellation && cancellation->is_requested()) {
    model->scheduler().refuse_cancelled(*job);
    return Started::kYes;
  }
  if (model->config().response_cache && cache_.is_on() && answer_from_cache(model, *job)) {
    return Started::kYes;
  }
  if (model->config().is_ensemble()) {
    start_ensemble(model, std::move(job));
    return Started::kYes;
  }
  const std::optional<Ticket> ticket = model->scheduler().submit(job);
  if (ticket && cancellation) {
    // Not a share of the model: whoever waits for the client must not keep it from going.
    cancellation->waits_in(std::shared_ptr<ModelScheduler>(model, &model->scheduler()), *ticket);
  }
  return ticket ? Started::kYes : Started::kModelIsClosing;
}

void InferenceServer::start_ensemble(const ModelHandle& model, std::unique_ptr<InferJob> job) {
  const Instant arrival = job->arrival;
  const int batch_size = job->checked.batch_size;
  auto done = [model, arrival, batch_size,
               next = std::move(job->done)](Outcome<inference::InferResponse> response) {
    const Instant end = os::now();
    const RequestTimes times{arrival, arrival, arrival, end, end};
    model->scheduler().record_ensemble(
        times, batch_size, response.ok() ? std::nullopt : std::optional(response.error().code));
    next(std::move(response));
  };
  const auto run = std::make_shared<EnsembleRun>(
      model->facts(), model, std::move(job->request), batch_size,
      [this, context = job->context](InferRequest request, InferDone step_done) {
        const auto trace = context.trace ? context.trace->child() : nullptr;
        infer(std::move(request), std::move(step_done), {context.cancellation, trace});
      },
      std::move(done));
  run->start();
}

// On a miss the job's answer will be kept.
bool InferenceServer::answer_from_cache(const ModelHandle& model, InferJob& job) {
  if (uses_shared_outputs(job.request) || job.request.in_sequence()) {
    return false;
  }
  const Instant start = os::now();
  const ResponseCache::Key key = ResponseCache::key_of(job.request, model->version());
  std::optional<inference::InferResponse> found = cache_.find(key);
  const Instant end = os::now();
  if (found) {
    found->id = job.request.id;
    model->scheduler().record_cache_hit({job.arrival, start, start, start, end});
    job.done(std::move(*found));
    return true;
  }
  model->scheduler().record_cache_miss(end - start);
  job.done = [this, key, next = std::move(job.done)](Outcome<inference::InferResponse> response) {
    if (response.ok()) {
      cache_.insert(key, *response);
    }
    next(std::move(response));
  };
  return false;
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
