// ModelScheduler: the queue and the instance threads of one model version.
//
//   submit (any thread) --> Batcher --> instance thread: gather, run, split --> done (any thread)
//
// Each instance has a thread of its own and runs one batch at a time. One lock guards the queue and
// the statistics; it is never held while an engine runs or a callback is called.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "serve/batch_run.h"
#include "serve/batcher.h"
#include "serve/request_check.h"
#include "serve/statistics.h"

namespace septet::serve {

// One request on its way. done is called exactly once, in whatever thread has the answer.
struct InferJob {
  inference::InferRequest request{};
  CheckedRequest checked{};
  Instant arrival{};
  std::function<void(Outcome<inference::InferResponse>)> done{};
};

class ModelScheduler {
 public:
  // At least one instance; facts outlives the scheduler.
  ModelScheduler(const ModelFacts& facts, std::vector<std::unique_ptr<ModelInstance>> instances);
  // Drains.
  ~ModelScheduler();
  ModelScheduler(const ModelScheduler&) = delete;
  ModelScheduler& operator=(const ModelScheduler&) = delete;

  // Queues the job, or answers it when the queue is full. After drain() began the job is left
  // where it is and false comes back: the caller looks for the model that replaced this one.
  bool submit(std::unique_ptr<InferJob>& job);

  // Takes nothing new, answers everything queued, ends the threads. Not from a callback.
  void drain();

  ModelStatistics statistics() const;

 private:
  using Jobs = std::vector<std::unique_ptr<InferJob>>;

  void serve_instance(ModelInstance& instance);
  Jobs next_batch();
  Jobs take_jobs(const std::vector<Ticket>& tickets);
  void fail_expired(Instant now, std::unique_lock<std::mutex>& lock);
  void run_batch(ModelInstance& instance, BatchInputs& inputs, Jobs& jobs);
  void finish(Jobs& jobs, std::vector<Outcome<inference::InferResponse>>& responses,
              const RequestTimes& times, int batch_size);
  void watch_deadlines();

  const ModelFacts& facts_;
  std::vector<std::unique_ptr<ModelInstance>> instances_;

  mutable std::mutex mutex_;  // guards all below but threads_
  std::condition_variable work_;
  std::condition_variable deadline_;
  Batcher batcher_;
  std::unordered_map<Ticket, std::unique_ptr<InferJob>> queued_;
  Ticket last_ticket_ = 0;
  ModelStatistics statistics_;
  bool closing_ = false;
  bool deadline_watched_ = false;

  std::vector<std::thread> threads_;
  std::thread deadline_thread_;  // started by the first request that can time out
};

}  // namespace septet::serve
