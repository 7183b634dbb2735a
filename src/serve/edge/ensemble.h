// EnsembleRun: one request on its way through the steps of an ensemble.
//
//   request --> tensors {name -> value} --> every step whose inputs exist --> more tensors -->
//   answer
//
// Owns itself through the callbacks of its steps, which may come from any thread. The steps are
// ordinary requests of the models named; their statistics count there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "serve/batch_run.h"

namespace septet::serve {

using InferDone = std::function<void(Outcome<inference::InferResponse>)>;
using InferStep = std::function<void(inference::InferRequest, InferDone)>;

// Whether the steps form a graph: each tensor has one producer, each input is produced or given.
[[nodiscard]] Result<Ok> check_ensemble(const ModelConfig& config);

class EnsembleRun : public std::enable_shared_from_this<EnsembleRun> {
 public:
  // facts outlives the run (owner keeps it); infer starts a step; done is called once.
  EnsembleRun(const ModelFacts& facts, std::shared_ptr<const void> owner,
              inference::InferRequest request, int batch_size, InferStep infer, InferDone done);

  void start();

 private:
  struct Step {
    bool started = false;
  };

  std::vector<std::size_t> take_ready();
  inference::InferRequest step_request(std::size_t index) const;
  void run_ready();
  void step_done(std::size_t index, Outcome<inference::InferResponse> response);
  void finish();

  const ModelFacts& facts_;
  std::shared_ptr<const void> owner_;
  inference::InferRequest request_;
  int batch_size_;
  InferStep infer_;
  InferDone done_;

  std::mutex mutex_;  // guards all below
  std::map<std::string, inference::OutputTensor> tensors_;
  std::vector<Step> steps_;
  std::size_t steps_left_;
  bool failed_ = false;
};

}  // namespace septet::serve
