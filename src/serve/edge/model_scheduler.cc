#include "serve/edge/model_scheduler.h"

#include <fmt/format.h>

#include "base/check.h"
#include "os/clock.h"
#include "serve/edge/tracer.h"

namespace septet::serve {

using inference::InferResponse;

namespace {

std::uint64_t unix_ms() { return static_cast<std::uint64_t>(os::unix_time_ns() / 1'000'000); }

}  // namespace

ModelScheduler::ModelScheduler(const ModelFacts& facts,
                               std::vector<std::unique_ptr<ModelInstance>> instances,
                               RateGate::Places places)
    : facts_(facts),
      instances_(std::move(instances)),
      places_(std::move(places)),
      batcher_(facts.config.max_batch_size, facts.config.dynamic_batching) {
  if (facts.config.sequence_batching) {
    sequences_.emplace(facts.config.max_batch_size, static_cast<int>(instances_.size()),
                       *facts.config.sequence_batching);
  }
  for (std::size_t i = 0; i < instances_.size(); ++i) {
    threads_.emplace_back([this, i] { serve_instance(static_cast<int>(i)); });
  }
}

ModelScheduler::~ModelScheduler() { drain(); }

// Puts the request into the queue; the reason when it must not wait there.
std::optional<Status> ModelScheduler::enqueue(Ticket ticket, const InferJob& job) {
  const inference::InferRequest& request = job.request;
  if (!sequences_) {
    const BatchRequest queued{ticket, job.checked.batch_size, job.checked.shape_key,
                              request.priority, request.timeout_us};
    if (batcher_.push(job.arrival, queued) == Batcher::Admission::kQueued) {
      return std::nullopt;
    }
    ++statistics_.rejected;
    return inference::unavailable("Exceeds maximum queue size");
  }
  if (!request.in_sequence()) {
    return inference::invalid_argument(
        fmt::format("inference request to model '{}' must specify a non-zero or non-empty "
                    "correlation ID",
                    facts_.config.name));
  }
  if (job.checked.batch_size > 1) {
    return inference::invalid_argument(
        fmt::format("inference request to model '{}' must specify batch-size 1 due to requirements "
                    "of sequence batcher",
                    facts_.config.name));
  }
  const SequenceKey key = sequence_key(request.sequence_id);
  if (sequences_->push(job.arrival, {ticket, key, request.sequence_start, request.sequence_end}) ==
      SequenceBatcher::Admission::kQueued) {
    return std::nullopt;
  }
  return inference::invalid_argument(
      fmt::format("inference request for sequence {} to model '{}' must specify the START flag on "
                  "the first request of the sequence",
                  key.substr(2), facts_.config.name));
}

std::optional<Ticket> ModelScheduler::submit(std::unique_ptr<InferJob>& job) {
  std::unique_ptr<InferJob> rejected;
  std::optional<Status> reason;
  Ticket ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) {
      return std::nullopt;
    }
    ticket = ++last_ticket_;
    reason = enqueue(ticket, *job);
    if (!reason) {
      queued_.emplace(ticket, std::move(job));
      if (batcher_.has_time_outs()) {
        watch_deadlines();
      }
    } else {
      rejected = std::move(job);
      statistics_.record_failure(os::now() - rejected->arrival);
    }
  }
  if (rejected) {
    reason->message = request_prefix(rejected->request) + reason->message;
    rejected->done(*reason);
  } else if (sequences_) {
    work_.notify_all();  // the sequence belongs to one instance, which must be the one to wake
  } else {
    work_.notify_one();
  }
  return ticket;
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

std::vector<Ticket> ModelScheduler::take_tickets(Instant now, int index) {
  if (!sequences_) {
    return closing_ ? batcher_.take_now(now) : batcher_.take(now);
  }
  for (const SequenceKey& ended : sequences_->take_ended(now)) {
    states_.erase(ended);
  }
  return sequences_->take(now, index);
}

std::optional<Instant> ModelScheduler::next_deadline(Instant now) const {
  return sequences_ ? sequences_->next_deadline(now) : batcher_.next_deadline();
}

bool ModelScheduler::has_work() const {
  return sequences_ ? !sequences_->empty() : !batcher_.empty();
}

// Whether take_tickets would give something, as far as can be told without taking.
bool ModelScheduler::is_due(Instant now, int index) const {
  if (sequences_) {
    return sequences_->is_due(now, index);
  }
  const std::optional<Instant> due = batcher_.next_deadline();
  return closing_ ? !batcher_.empty() : due && *due <= now;
}

// Waits for a batch; empty when the scheduler closes and nothing is left. With a batch the
// instance's place, if it has one, is entered: what comes while it waits there joins the batch.
ModelScheduler::Jobs ModelScheduler::next_batch(int index) {
  RateGate::Place* place =
      places_.empty() ? nullptr : places_[static_cast<std::size_t>(index)].get();
  bool entered = false;
  std::unique_lock lock(mutex_);
  for (;;) {
    const Instant now = os::now();
    fail_expired(now, lock);
    if (place != nullptr && !entered && is_due(now, index)) {
      work_.notify_one();  // another instance may be let through before this one
      lock.unlock();
      place->enter();
      entered = true;
      lock.lock();
      continue;
    }
    const std::vector<Ticket> tickets = take_tickets(now, index);
    if (!tickets.empty()) {
      // Another instance may find a batch in what is left, or the end of the queue.
      if (closing_) {
        work_.notify_all();
      } else if (has_work()) {
        work_.notify_one();
      }
      return take_jobs(tickets);
    }
    if (entered) {
      lock.unlock();
      place->leave_unused();
      entered = false;
      lock.lock();
      continue;
    }
    if (closing_ && !has_work()) {
      work_.notify_all();
      return {};
    }
    const std::optional<Instant> next = next_deadline(now);
    if (next) {
      work_.wait_until(lock, wait_point(*next));
    } else {
      work_.wait(lock);
    }
  }
}

void ModelScheduler::serve_instance(int index) {
  Scratch scratch;
  for (;;) {
    Jobs jobs = next_batch(index);
    if (jobs.empty()) {
      return;
    }
    run_batch(*instances_[static_cast<std::size_t>(index)], scratch, jobs);
    if (!places_.empty()) {
      places_[static_cast<std::size_t>(index)]->leave();
    }
  }
}

// The states of the jobs' sequences. A sequence has one request in flight, so its states are this
// instance's alone until finish().
std::vector<SequenceStates*> ModelScheduler::states_of(const Jobs& jobs) {
  std::vector<SequenceStates*> states;
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<InferJob>& job : jobs) {
    states.push_back(&states_[sequence_key(job->request.sequence_id)]);
  }
  return states;
}

Outcome<std::vector<OutputTensor>> ModelScheduler::run_instance(
    ModelInstance& instance, Scratch& scratch, Jobs& jobs, std::span<const BatchMember> members,
    RequestTimes& times) {
  std::vector<std::string> wanted = wanted_outputs(facts_.config, members);
  Outcome<Ok> gathered = scratch.inputs.gather(facts_.config, members);
  std::vector<SequenceStates*> states;
  if (gathered.ok() && sequences_) {
    states = states_of(jobs);
    add_state_outputs(facts_.config, wanted);
    gathered =
        scratch.sequence_inputs.add(facts_, members, states, scratch.inputs.tensors_to_extend());
  }
  times.infer_start = os::now();
  if (!gathered.ok()) {
    times.infer_end = times.infer_start;
    return gathered.error();
  }
  int batch_size = 0;
  for (const BatchMember& member : members) {
    batch_size += member.batch_size;
  }
  auto outputs =
      instance.run({.inputs = scratch.inputs.tensors(),
                    .outputs = wanted,
                    .batch_size = batch_size,
                    .parameters = jobs.size() == 1 ? &jobs.front()->request.parameters : nullptr});
  times.infer_end = os::now();
  if (outputs.ok() && sequences_) {
    SEPTET_TRY(keep_states(facts_.config, members, states, *outputs));
  }
  return outputs;
}

void ModelScheduler::run_batch(ModelInstance& instance, Scratch& scratch, Jobs& jobs) {
  RequestTimes times;
  times.compute_start = os::now();
  std::vector<BatchMember> members;
  int batch_size = 0;
  for (const std::unique_ptr<InferJob>& job : jobs) {
    members.push_back({&job->request, job->checked.batch_size});
    batch_size += job->checked.batch_size;
  }
  const auto outputs = run_instance(instance, scratch, jobs, members, times);
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
      if (const auto& trace = jobs[i]->context.trace) {
        trace->mark("COMPUTE_START", times.compute_start);
        trace->mark("COMPUTE_INPUT_END", times.infer_start);
        trace->mark("COMPUTE_OUTPUT_START", times.infer_end);
        trace->mark("COMPUTE_END", times.output_end);
      }
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
    if (sequences_) {
      std::vector<SequenceKey> keys;
      for (const std::unique_ptr<InferJob>& job : jobs) {
        keys.push_back(sequence_key(job->request.sequence_id));
      }
      sequences_->finish(times.output_end, keys);
    }
  }
  if (sequences_) {
    work_.notify_all();
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

void ModelScheduler::record_ensemble(const RequestTimes& times, int batch_size,
                                     std::optional<inference::StatusCode> failure) {
  const std::lock_guard lock(mutex_);
  if (!failure) {
    statistics_.record_success(times);
    statistics_.record_execution(static_cast<std::uint64_t>(batch_size), times, unix_ms());
  } else {
    statistics_.record_failure(times.output_end - times.arrival);
    statistics_.cancelled += failure == inference::StatusCode::kCancelled ? 1 : 0;
  }
}

void ModelScheduler::record_cache_hit(const RequestTimes& times) {
  const std::lock_guard lock(mutex_);
  statistics_.record_cache_hit(times, unix_ms());
}

void ModelScheduler::record_cache_miss(Duration look_up) {
  const std::lock_guard lock(mutex_);
  statistics_.cache_miss.add(look_up);
}

ModelStatistics ModelScheduler::statistics() const {
  const std::lock_guard lock(mutex_);
  ModelStatistics copy = statistics_;
  copy.pending = batcher_.size() + (sequences_ ? sequences_->size() : 0);
  return copy;
}

}  // namespace septet::serve
