#include "serve/edge/model_scheduler.h"

#include <fmt/format.h>

#include <chrono>

#include "base/check.h"
#include "os/clock.h"

namespace septet::serve {

using inference::InferResponse;

namespace {

std::uint64_t unix_ms() { return static_cast<std::uint64_t>(os::unix_time_ns() / 1'000'000); }

// Instants are CLOCK_MONOTONIC, and so is the steady clock that condition variables wait on.
std::chrono::steady_clock::time_point wait_point(Instant instant) {
  return std::chrono::steady_clock::time_point(instant.time_since_epoch());
}

}  // namespace

ModelScheduler::ModelScheduler(const ModelFacts& facts,
                               std::vector<std::unique_ptr<ModelInstance>> instances)
    : facts_(facts),
      instances_(std::move(instances)),
      batcher_(facts.config.max_batch_size, facts.config.dynamic_batching) {
  CHECK(!instances_.empty());
  for (const std::unique_ptr<ModelInstance>& instance : instances_) {
    threads_.emplace_back([this, &instance] { serve_instance(*instance); });
  }
}

ModelScheduler::~ModelScheduler() { drain(); }

bool ModelScheduler::submit(std::unique_ptr<InferJob>& job) {
  const std::uint64_t priority = job->request.priority;
  const std::uint64_t timeout_us = job->request.timeout_us;
  std::unique_ptr<InferJob> rejected;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) {
      return false;
    }
    const Ticket ticket = ++last_ticket_;
    const BatchRequest request{ticket, job->checked.batch_size, job->checked.shape_key, priority,
                               timeout_us};
    if (batcher_.push(job->arrival, request) == Batcher::Admission::kQueued) {
      queued_.emplace(ticket, std::move(job));
      if (batcher_.has_time_outs()) {
        watch_deadlines();
      }
    } else {
      rejected = std::move(job);
      statistics_.record_failure(os::now() - rejected->arrival);
      ++statistics_.rejected;
    }
  }
  if (rejected) {
    rejected->done(
        inference::unavailable(request_prefix(rejected->request) + "Exceeds maximum queue size"));
  } else {
    work_.notify_one();
  }
  return true;
}

// Called under the lock.
void ModelScheduler::watch_deadlines() {
  if (deadline_watched_) {
    deadline_.notify_one();
    return;
  }
  deadline_watched_ = true;
  deadline_thread_ = std::thread([this] {
    std::unique_lock watch_lock(mutex_);
    while (!closing_) {
      fail_expired(os::now(), watch_lock);
      if (closing_) {
        return;
      }
      if (const std::optional<Instant> next = batcher_.next_time_out()) {
        deadline_.wait_until(watch_lock, wait_point(*next));
      } else {
        deadline_.wait(watch_lock);
      }
    }
  });
}

// Answers what timed out in the queue. Unlocks while it does.
void ModelScheduler::fail_expired(Instant now, std::unique_lock<std::mutex>& lock) {
  const std::vector<Ticket> tickets = batcher_.take_expired(now);
  if (tickets.empty()) {
    return;
  }
  Jobs jobs = take_jobs(tickets);
  for (const std::unique_ptr<InferJob>& job : jobs) {
    statistics_.record_failure(now - job->arrival);
    ++statistics_.rejected;
  }
  lock.unlock();
  for (std::unique_ptr<InferJob>& job : jobs) {
    job->done(inference::unavailable(request_prefix(job->request) + "Request timeout expired"));
    job.reset();
  }
  lock.lock();
}

ModelScheduler::Jobs ModelScheduler::take_jobs(const std::vector<Ticket>& tickets) {
  Jobs jobs;
  jobs.reserve(tickets.size());
  for (const Ticket ticket : tickets) {
    const auto found = queued_.find(ticket);
    CHECK(found != queued_.end());
    jobs.push_back(std::move(found->second));
    queued_.erase(found);
  }
  return jobs;
}

// Waits for a batch; empty when the scheduler closes and nothing is left.
ModelScheduler::Jobs ModelScheduler::next_batch() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const Instant now = os::now();
    fail_expired(now, lock);
    const std::vector<Ticket> tickets = closing_ ? batcher_.take_now(now) : batcher_.take(now);
    if (!tickets.empty()) {
      // Another instance may find a batch in what is left.
      if (!batcher_.empty()) {
        work_.notify_one();
      }
      return take_jobs(tickets);
    }
    if (closing_ && batcher_.empty()) {
      return {};
    }
    if (const std::optional<Instant> next = batcher_.next_deadline()) {
      work_.wait_until(lock, wait_point(*next));
    } else {
      work_.wait(lock);
    }
  }
}

void ModelScheduler::serve_instance(ModelInstance& instance) {
  BatchInputs inputs;
  for (;;) {
    Jobs jobs = next_batch();
    if (jobs.empty()) {
      return;
    }
    run_batch(instance, inputs, jobs);
  }
}

void ModelScheduler::run_batch(ModelInstance& instance, BatchInputs& inputs, Jobs& jobs) {
  RequestTimes times;
  times.compute_start = os::now();
  std::vector<BatchMember> members;
  int batch_size = 0;
  for (const std::unique_ptr<InferJob>& job : jobs) {
    members.push_back({&job->request, job->checked.batch_size});
    batch_size += job->checked.batch_size;
  }
  const std::vector<std::string> wanted = wanted_outputs(facts_.config, members);
  const Outcome<Ok> gathered = inputs.gather(facts_.config, members);
  times.infer_start = os::now();
  Outcome<std::vector<OutputTensor>> outputs =
      gathered.ok()
          ? instance.run(
                {.inputs = inputs.tensors(),
                 .outputs = wanted,
                 .batch_size = batch_size,
                 .parameters = jobs.size() == 1 ? &jobs.front()->request.parameters : nullptr})
          : Outcome<std::vector<OutputTensor>>(gathered.error());
  times.infer_end = os::now();
  std::vector<Outcome<InferResponse>> responses =
      outputs.ok() ? split_outputs(facts_, members, *outputs)
                   : std::vector<Outcome<InferResponse>>(jobs.size(), outputs.error());
  times.output_end = os::now();
  finish(jobs, responses, times, batch_size);
}

void ModelScheduler::finish(Jobs& jobs, std::vector<Outcome<InferResponse>>& responses,
                            const RequestTimes& times, int batch_size) {
  {
    const std::lock_guard lock(mutex_);
    bool any_success = false;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      RequestTimes own = times;
      own.arrival = jobs[i]->arrival;
      if (responses[i].ok()) {
        statistics_.record_success(own);
        any_success = true;
      } else {
        statistics_.record_failure(own.output_end - own.arrival);
      }
    }
    if (any_success) {
      statistics_.record_execution(static_cast<std::uint64_t>(batch_size), times, unix_ms());
    }
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (responses[i].ok()) {
      jobs[i]->done(std::move(responses[i]));
    } else {
      Status status = responses[i].error();
      status.message = request_prefix(jobs[i]->request) + status.message;
      jobs[i]->done(std::move(status));
    }
    jobs[i].reset();
  }
}

void ModelScheduler::drain() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  work_.notify_all();
  deadline_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) {
      thread.join();
    }
  }
  if (deadline_thread_.joinable()) {
    deadline_thread_.join();
  }
}

ModelStatistics ModelScheduler::statistics() const {
  const std::lock_guard lock(mutex_);
  ModelStatistics copy = statistics_;
  copy.pending = batcher_.size();
  return copy;
}

}  // namespace septet::serve
