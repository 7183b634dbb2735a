// LearnedSpeed: how fast one replica answers one model, in requests per busy second.
//
// Owned by Dispatcher, one per (replica, model). A ratio of two moving averages, completed requests
// and busy time, so that one long and one short service do not count the same. Weight 0.2 per
// completed batch: a replica that slows to 0.3 of its speed is known within ten.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace septet::balance {

class LearnedSpeed {
 public:
  // A batch of so many requests was completed after so much busy time.
  void observe(std::uint32_t requests, Duration busy);
  bool known() const { return requests_ > 0; }
  // Requests per busy second; 0 when nothing is known.
  double per_second() const { return busy_seconds_ > 0 ? requests_ / busy_seconds_ : 0; }
  // Mean busy time of a request; 0 when nothing is known.
  double mean_seconds() const { return requests_ > 0 ? busy_seconds_ / requests_ : 0; }

 private:
  static constexpr double kWeight = 0.2;
  double requests_ = 0;  // both averages start at 0, so their ratio is unbiased
  double busy_seconds_ = 0;
};

inline void LearnedSpeed::observe(std::uint32_t requests, Duration busy) {
  requests_ += kWeight * (requests - requests_);
  busy_seconds_ += kWeight * (to_seconds(busy) - busy_seconds_);
}

}  // namespace septet::balance
