#include "measure/load_schedule.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace septet::measure {

LoadSchedule LoadSchedule::constant(double rate) {
  CHECK(rate > 0);
  LoadSchedule schedule;
  schedule.rate_ = rate;
  return schedule;
}

LoadSchedule LoadSchedule::poisson(double rate, std::uint64_t seed) {
  LoadSchedule schedule = constant(rate);
  schedule.prng_.emplace(seed);
  return schedule;
}

LoadSchedule LoadSchedule::intervals(std::vector<Duration> gaps) {
  CHECK(std::accumulate(gaps.begin(), gaps.end(), Duration::zero()) > Duration::zero());
  LoadSchedule schedule;
  schedule.gaps_ = std::move(gaps);
  return schedule;
}

Duration LoadSchedule::next() {
  const std::uint64_t index = count_++;
  if (!gaps_.empty()) {
    at_ += gaps_[static_cast<std::size_t>(index % gaps_.size())];
    return at_;
  }
  if (prng_) {
    poisson_at_ += prng_->exponential() / rate_;
    return from_seconds(poisson_at_);
  }
  // Computed from the count, not added up, so that the rate holds over hours.
  return from_seconds(static_cast<double>(index) / rate_);
}

double shown_rate(const std::vector<Duration>& gaps) {
  const Duration total = std::accumulate(gaps.begin(), gaps.end(), Duration::zero());
  CHECK(total > Duration::zero());
  const double exact = static_cast<double>(gaps.size()) / to_seconds(total);
  return exact < 1 ? exact : std::floor(exact);
}

}  // namespace septet::measure
