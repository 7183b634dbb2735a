// ModelScheduler: the queue and the instance threads of one model version.
//
//   submit (any thread) --> Batcher --> instance thread: gather, run, split --> done (any thread)
//
// Each instance has a thread of its own and runs one batch at a time. One lock guards the queue and
// the statistics; it is never held while an engine runs or a callback is called.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "serve/batch_run.h"
#include "serve/batcher.h"
#include "serve/edge/rate_gate.h"
#include "serve/request_check.h"
#include "serve/sequence_batcher.h"
#include "serve/sequence_inputs.h"
#include "serve/statistics.h"

namespace septet::serve {

// Instants are CLOCK_MONOTONIC, and so is the steady clock that condition variables wait on.
inline std::chrono::steady_clock::time_point wait_point(Instant instant) {
  return std::chrono::steady_clock::time_point(instant.time_since_epoch());
}

class Cancellation;
class RequestTrace;

// What goes along with a request to wherever it is worked on; each may be absent.
struct InferContext {
  std::shared_ptr<Cancellation> cancellation{};
  std::shared_ptr<RequestTrace> trace{};
};

// One request on its way. done is called exactly once, in whatever thread has the answer.
struct InferJob {
  inference::InferRequest request{};
  CheckedRequest checked{};
  Instant arrival{};
  std::function<void(Outcome<inference::InferResponse>)> done{};
  InferContext context{};
};

class ModelScheduler {
 public:
  // facts outlives the scheduler. No instances: an ensemble, which only counts here. places: one
  // per instance, or none when nothing limits them.
  ModelScheduler(const ModelFacts& facts, std::vector<std::unique_ptr<ModelInstance>> instances,
                 RateGate::Places places = {});
  // Drains.
  ~ModelScheduler();
  ModelScheduler(const ModelScheduler&) = delete;
  ModelScheduler& operator=(const ModelScheduler&) = delete;

  // Queues the job, or answers it when the queue is full. After drain() began the job is left
  // where it is and nothing comes back: the caller looks for the model that replaced this one.
  std::optional<Ticket> submit(std::unique_ptr<InferJob>& job);
  // Answers the job if it still waits: kCancelled. One of a sequence stays where it is.
  void cancel(Ticket ticket);
  // Counts and answers one whose client went before it was queued.
  void refuse_cancelled(const InferJob& job);

  // Takes nothing new, answers everything queued, ends the threads. Not from a callback.
  void drain();

  ModelStatistics statistics() const;

  // Counts a request that was answered without an instance: by an ensemble's steps...
  void record_ensemble(const RequestTimes& times, int batch_size,
                       std::optional<inference::StatusCode> failure);
  // ...or from the response cache.
  void record_cache_hit(const RequestTimes& times);
  void record_cache_miss(Duration look_up);

 private:
  using Jobs = std::vector<std::unique_ptr<InferJob>>;

  void serve_instance(int index);
  Jobs next_batch(int index);
  std::vector<Ticket> take_tickets(Instant now, int index);
  bool is_due(Instant now, int index) const;
  std::optional<Instant> next_deadline(Instant now) const;
  std::optional<Status> enqueue(Ticket ticket, const InferJob& job);
  bool has_work() const;
  Jobs take_jobs(const std::vector<Ticket>& tickets);
  void fail_expired(Instant now, std::unique_lock<std::mutex>& lock);
  void record_cancelled(const InferJob& job);
  struct Scratch {  // an instance's memory between batches
    BatchInputs inputs{};
    SequenceInputs sequence_inputs{};
  };
  void run_batch(ModelInstance& instance, Scratch& scratch, Jobs& jobs);
  Outcome<std::vector<OutputTensor>> run_instance(ModelInstance& instance, Scratch& scratch,
                                                  Jobs& jobs, std::span<const BatchMember> members,
                                                  RequestTimes& times);
  std::vector<SequenceStates*> states_of(const Jobs& jobs);
  void finish(Jobs& jobs, std::vector<Outcome<inference::InferResponse>>& responses,
              const RequestTimes& times, int batch_size);
  void watch_deadlines();

  const ModelFacts& facts_;
  std::vector<std::unique_ptr<ModelInstance>> instances_;
  RateGate::Places places_;  // each used by its instance's thread

  mutable std::mutex mutex_;  // guards all below but threads_
  std::condition_variable work_;
  std::condition_variable deadline_;
  Batcher batcher_;
  std::optional<SequenceBatcher> sequences_;  // instead of the batcher
  std::map<SequenceKey, SequenceStates> states_;
  std::unordered_map<Ticket, std::unique_ptr<InferJob>> queued_;
  Ticket last_ticket_ = 0;
  ModelStatistics statistics_;
  bool closing_ = false;
  bool deadline_watched_ = false;

  std::vector<std::thread> threads_;
  std::thread deadline_thread_;  // started by the first request that can time out
};

}  // namespace septet::serve
