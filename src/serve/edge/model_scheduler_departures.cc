// How a request leaves a ModelScheduler's queue without having run: its time is over, or its client
// does not want it any more.
#include "os/clock.h"
#include "serve/edge/model_scheduler.h"

namespace septet::serve {

namespace {

Status cancelled(const inference::InferRequest& request) {
  return {inference::StatusCode::kCancelled, request_prefix(request) + "Request cancelled"};
}

}  // namespace

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

void ModelScheduler::cancel(Ticket ticket) {
  std::unique_ptr<InferJob> job;
  {
    const std::lock_guard lock(mutex_);
    // What an instance has taken is no longer queued; what has timed out is about to be told so.
    const auto found = queued_.find(ticket);
    if (found == queued_.end() || sequences_ || !batcher_.cancel(ticket)) {
      return;
    }
    job = std::move(found->second);
    queued_.erase(found);
    record_cancelled(*job);
  }
  // What is left may form another batch, or be nothing that a closing scheduler waits for.
  work_.notify_all();
  job->done(cancelled(job->request));
}

void ModelScheduler::record_cancelled(const InferJob& job) {
  statistics_.record_failure(os::now() - job.arrival);
  ++statistics_.cancelled;
}

void ModelScheduler::refuse_cancelled(const InferJob& job) {
  {
    const std::lock_guard lock(mutex_);
    record_cancelled(job);
  }
  job.done(cancelled(job.request));
}

}  // namespace septet::serve
