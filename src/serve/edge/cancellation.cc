#include "serve/edge/cancellation.h"

#include "serve/edge/model_scheduler.h"

namespace septet::serve {

void Cancellation::cancel() {
  std::vector<Place> places;
  {
    const std::lock_guard lock(mutex_);
    requested_ = true;
    places.swap(places_);
  }
  // Without the lock: an answer to the client may come from within.
  for (const Place& place : places) {
    if (const std::shared_ptr<ModelScheduler> scheduler = place.scheduler.lock()) {
      scheduler->cancel(place.ticket);
    }
  }
}

bool Cancellation::is_requested() const {
  const std::lock_guard lock(mutex_);
  return requested_;
}

void Cancellation::waits_in(std::weak_ptr<ModelScheduler> scheduler, Ticket ticket) {
  {
    const std::lock_guard lock(mutex_);
    if (!requested_) {
      places_.push_back({std::move(scheduler), ticket});
      return;
    }
  }
  if (const std::shared_ptr<ModelScheduler> present = scheduler.lock()) {
    present->cancel(ticket);
  }
}

}  // namespace septet::serve
