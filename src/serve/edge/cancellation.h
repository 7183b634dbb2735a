// Cancellation: the wish of a client, or its departure, to have one request not executed any more.
//
// Shared by whoever can notice (the connection, the call) and the request on its way. Any thread
// may call anything here. A request that waits in a queue leaves it and is answered kCancelled; one
// that is being executed runs to its end, and so does one of a sequence: what follows it counts on
// it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "serve/batcher.h"

namespace septet::serve {

class ModelScheduler;

class Cancellation {
 public:
  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  // Harmless when repeated, or when there is nothing left to cancel.
  void cancel();
  bool is_requested() const;

  // The request, or a step of it, waits there under this ticket. When cancel() came before, it
  // takes effect now.
  void waits_in(std::weak_ptr<ModelScheduler> scheduler, Ticket ticket);

 private:
  struct Place {
    std::weak_ptr<ModelScheduler> scheduler{};
    Ticket ticket = 0;
  };

  mutable std::mutex mutex_;
  bool requested_ = false;
  std::vector<Place> places_;  // one, or as many as an ensemble has steps
};

}  // namespace septet::serve
