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
#include "serve/edge/model_store.h"

namespace septet::serve {

struct InferenceServerOptions {
  std::string name = "triton";  // the real example clients insist on this one
  std::string version{};
  enum class Readiness { kAllModels, kServer };
  Readiness readiness = Readiness::kAllModels;
  enum class Control { kNone, kExplicit };
  Control control = Control::kNone;
};

using InferDone = std::function<void(Outcome<inference::InferResponse>)>;

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

  // Loads these at start, in order, then counts as started. Failures go to on_failure and leave
  // the other models alone.
  void load_at_start(std::vector<std::string> names, std::function<void(const Error&)> on_failure,
                     std::function<void()> on_started);

  bool is_live() const { return true; }
  bool is_ready() const;
  // From here on not ready: a balancer sends no more.
  void start_draining() { draining_ = true; }

  // Checks and queues; done is called once, from any thread, maybe before this returns.
  void infer(inference::InferRequest request, InferDone done);

  // done is called from the control thread. kUnsupported unless control is explicit.
  void load(std::string name, LoadOverride override, std::function<void(Outcome<Ok>)> done);
  void unload(std::string name, std::function<void(Outcome<Ok>)> done);

 private:
  InferenceServerOptions options_;
  ModelStore& store_;
  std::atomic<bool> started_ = false;
  std::atomic<bool> draining_ = false;
  os::EventLoop control_;
  std::thread control_thread_;
};

}  // namespace septet::serve
