#include "serve/edge/rate_gate.h"

namespace septet::serve {

RateGate::Place::~Place() {
  const std::lock_guard lock(gate_.mutex_);
  gate_.limiter_.remove(member_);
  gate_.grant();
}

void RateGate::Place::enter() {
  std::unique_lock lock(gate_.mutex_);
  gate_.limiter_.request(member_);
  gate_.grant();
  gate_.granted_changed_.wait(lock, [&] { return gate_.granted_.erase(member_) > 0; });
}

void RateGate::Place::leave() {
  const std::lock_guard lock(gate_.mutex_);
  gate_.limiter_.release(member_);
  gate_.grant();
}

void RateGate::Place::leave_unused() {
  const std::lock_guard lock(gate_.mutex_);
  gate_.limiter_.withdraw(member_);
  gate_.grant();
}

Result<RateGate::Places> RateGate::places_of(RateGate* gate, const inference::ModelConfig& config) {
  Places places;
  if (gate == nullptr) {
    return places;
  }
  std::vector<RateClaim> claims = rate_claims(config);
  claims.resize(static_cast<std::size_t>(config.instance_count()));
  for (RateClaim& claim : claims) {
    auto place = gate->add(std::move(claim));
    if (!place.ok()) {
      return place.error();
    }
    places.push_back(std::move(*place));
  }
  return places;
}

Result<std::unique_ptr<RateGate::Place>> RateGate::add(RateClaim claim) {
  const std::lock_guard lock(mutex_);
  const auto member = limiter_.add(std::move(claim));
  if (!member.ok()) {
    return member.error();
  }
  return std::make_unique<Place>(*this, *member);
}

// Called under the lock.
void RateGate::grant() {
  for (const RateLimiter::Member member : limiter_.take_granted()) {
    granted_.insert(member);
  }
  granted_changed_.notify_all();
}

}  // namespace septet::serve
