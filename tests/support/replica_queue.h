// ReplicaQueue: k replicas behind one first-come-first-served queue, in virtual time.
//
// What SimulatedServer does with the clock, as arithmetic: given the arrivals and the service times
// it says exactly when each request is answered. A value type.
#pragma once

#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

#include "base/time.h"

namespace septet::test {

class ReplicaQueue {
 public:
  explicit ReplicaQueue(int replicas) {
    for (int i = 0; i < replicas; ++i) {
      free_at_.push(Duration::zero());
    }
  }
  // When a request that arrives now (arrivals come in order) is answered.
  Duration serve(Duration arrival, Duration service) {
    const Duration start = std::max(arrival, free_at_.top());
    free_at_.pop();
    free_at_.push(start + service);
    return start + service;
  }

 private:
  std::priority_queue<Duration, std::vector<Duration>, std::greater<>> free_at_;
};

}  // namespace septet::test
