// InferenceServer: what HTTP and gRPC both ask: the models, their state, an inference.
//
// Owned by main; any thread may call it. Loading and unloading run one after another on a control
// thread of its own, because they take long; everything else answers at once.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "os/event_loop.h"
#include "serve/edge/cancellation.h"
#include "serve/edge/ensemble.h"
#include "serve/edge/model_store.h"
#include "serve/edge/response_cache.h"
#include "serve/edge/server_log.h"
#include "serve/edge/shared_memory.h"
#include "serve/edge/tracer.h"

namespace septet::serve {

struct InferenceServerOptions {
  std::string name = "triton";  // the real example clients insist on this one
  std::string version{};
  enum class Readiness { kAllModels, kServer };
  Readiness readiness = Readiness::kAllModels;
  enum class Control { kNone, kExplicit, kPoll };
  Control control = Control::kNone;
  bool allow_client_shared_memory = true;
  std::size_t cache_bytes = 0;  // of the response cache; 0 = none
  TraceStart trace{};
};

class InferenceServer {
 public:
  InferenceServer(InferenceServerOptions options, ModelStore& store);
  // Ends the control thread after the command in hand.
  ~InferenceServer();
  InferenceServer(const InferenceServer&) = delete;
  InferenceServer& operator=(const InferenceServer&) = delete;

  const InferenceServerOptions& options() const { return options_; }
  std::vector<std::string> extensions() const;
  const ModelStore& store() const { return store_; }
  SharedMemoryRegions& memory() { return memory_; }
  ServerLog& log() { return log_; }
  Tracer& tracer() { return *tracer_; }

  // Loads these at start, in order, then counts as started. Failures are logged and leave the
  // other models alone.
  void load_at_start(std::vector<std::string> names, std::function<void()> on_started);

  // Looks at the repository now and then every so often, and follows its changes (control mode
  // poll).
  void follow_repository(Duration every, std::function<void()> on_started);

  bool is_live() const { return true; }
  bool is_ready() const;
  // From here on not ready: a balancer sends no more.
  void start_draining() { draining_ = true; }

  // The loaded versions that a statistics call means; an empty name means all models.
  Outcome<std::vector<ModelHandle>> statistics_of(const std::string& name,
                                                  const std::string& version) const;
  // kUnsupported when clients may not register shared memory.
  [[nodiscard]] Outcome<Ok> register_memory(const SharedMemoryStatus& region);

  // Checks and queues; done is called once, from any thread, maybe before this returns.
  void infer(inference::InferRequest request, InferDone done, InferContext context = {});

  // done is called from the control thread. kUnsupported unless control is explicit.
  void load(std::string name, LoadOverride override, std::function<void(Outcome<Ok>)> done);
  void unload(std::string name, std::function<void(Outcome<Ok>)> done);

 private:
  enum class Started { kYes, kModelIsClosing };
  Started start(const ModelHandle& model, std::unique_ptr<InferJob>& job);
  void begin_trace(const ModelHandle& model, InferJob& job);
  void start_ensemble(const ModelHandle& model, std::unique_ptr<InferJob> job);
  bool answer_from_cache(const ModelHandle& model, InferJob& job);

  InferenceServerOptions options_;
  ModelStore& store_;
  SharedMemoryRegions memory_;
  ServerLog log_;
  std::shared_ptr<Tracer> tracer_;
  ResponseCache cache_;
  std::atomic<bool> started_ = false;
  std::atomic<bool> model_missing_ = false;  // one asked for at start is not in the repository
  std::atomic<bool> draining_ = false;
  os::EventLoop control_;
  std::thread control_thread_;
};

}  // namespace septet::serve
