// RateGate: the threads of all models' instances in front of one RateLimiter.
//
// Owned by main's object graph, outlives the models. Any thread may call it. One lock guards the
// limiter; it is held for its decisions only.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>

#include "serve/rate_limiter.h"

namespace septet::serve {

class RateGate {
 public:
  explicit RateGate(std::vector<RatePool> pools) : limiter_(std::move(pools)) {}

  // One instance's place, which it gives up at its end. Used by the instance's thread.
  class Place {
   public:
    Place(RateGate& gate, RateLimiter::Member member) : gate_(gate), member_(member) {}
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // Waits until the instance may run. It does until leave().
    void enter();
    void leave();
    // In the place of leave(), when there was nothing to run after all.
    void leave_unused();

   private:
    RateGate& gate_;
    RateLimiter::Member member_;
  };

  using Places = std::vector<std::unique_ptr<Place>>;
  // One for each of the model's instances; none without a gate. kUsage: see RateLimiter::add.
  static Result<Places> places_of(RateGate* gate, const inference::ModelConfig& config);

 private:
  Result<std::unique_ptr<Place>> add(RateClaim claim);
  void grant();

  std::mutex mutex_;  // guards all below
  std::condition_variable granted_changed_;
  RateLimiter limiter_;
  std::set<RateLimiter::Member> granted_;  // not yet seen by their threads
};

}  // namespace septet::serve
