// Which replica: the rules of the policies, the bound and the slow ones.

#include <algorithm>

#include "balance/dispatcher.h"

namespace septet::balance {

namespace {

// Rule of the bound: see the top of dispatcher.h.
constexpr double kAlwaysOneBelow = 0.005;
constexpr double kOneWhenCalmBelow = 0.04;
constexpr double kCalm = 0.8;
constexpr double kBusy = 0.85;  // hysteresis: from here back to 2
constexpr double kLongestPipe = 64;

// A replica this much slower than the median for so many replies in a row is taken out.
constexpr double kSlowShare = 0.2;
constexpr std::uint32_t kSlowReplies = 20;

constexpr std::uint32_t kNobody = ~0U;

}  // namespace

bool Dispatcher::usable(const Model& model, std::uint32_t replica) const {
  return replicas_[replica].present && replicas_[replica].health.up() &&
         model.lanes[replica].eligible &&
         model.lanes[replica].outstanding < options_.max_outstanding;
}

// Whether the lane's newest batch was opened now and is not full.
bool Dispatcher::grows(Instant now, const Lane& lane) {
  return lane.open != kNoPlace && lane.opened_at == now &&
         lane.places[lane.open].size < lane.batch_cap;
}

double Dispatcher::speed(const Model& model, std::uint32_t replica) const {
  const Lane& lane = model.lanes[replica];
  if (options_.learn_speed && lane.learned.known() && lane.learned.per_second() > 0) {
    return lane.learned.per_second();
  }
  if (lane.set_speed > 0) {
    return lane.set_speed;
  }
  return model.mean_seconds > 0 ? 1 / model.mean_seconds : 1;
}

std::optional<std::uint32_t> Dispatcher::pick(Instant now, Model& model) {
  switch (options_.policy) {
    case Policy::kPull:
      return pick_pull(now, model);
    case Policy::kShortestExpectedDelay:
      return pick_least(model, false);
    case Policy::kRoundRobin:
      return pick_rotating(model, false);
    case Policy::kLeastOutstanding:
      return pick_rotating(model, true);
    case Policy::kRandom:
      return pick_random(model);
    case Policy::kPowerOfTwo:
      return pick_of_two(model);
  }
  return std::nullopt;
}

// A batch that was opened in this instant is filled first.
std::optional<std::uint32_t> Dispatcher::pick_pull(Instant now, const Model& model) const {
  for (std::uint32_t index = 0; index < replicas_.size(); ++index) {
    if (grows(now, model.lanes[index]) && usable(model, index)) {
      return index;
    }
  }
  return pick_least(model, true);
}

// The smallest (outstanding + 1) / speed. Ties: bounded, to the faster (fastest idle first);
// without bound, to the one with fewer outstanding, so that a slow idle one is used too.
std::optional<std::uint32_t> Dispatcher::pick_least(const Model& model, bool bounded) const {
  std::optional<std::uint32_t> best;
  double best_delay = 0;
  double best_speed = 0;
  std::uint32_t best_outstanding = 0;
  for (std::uint32_t index = 0; index < replicas_.size(); ++index) {
    const Lane& lane = model.lanes[index];
    if (!usable(model, index) || (bounded && lane.batches >= model.bound * lane.instances)) {
      continue;
    }
    const double replica_speed = speed(model, index);
    const double ahead = bounded ? lane.batches / lane.instances : lane.outstanding;
    const double delay = (ahead + 1) / replica_speed;
    bool better = !best || delay < best_delay;
    if (best && delay == best_delay) {
      better = !bounded && lane.outstanding != best_outstanding
                   ? lane.outstanding < best_outstanding
                   : replica_speed > best_speed;
    }
    if (better) {
      best = index;
      best_delay = delay;
      best_speed = replica_speed;
      best_outstanding = lane.outstanding;
    }
  }
  return best;
}

std::optional<std::uint32_t> Dispatcher::pick_rotating(Model& model, bool least_outstanding) {
  std::optional<std::uint32_t> best;
  const auto count = static_cast<std::uint32_t>(replicas_.size());
  for (std::uint32_t step = 0; step < count; ++step) {
    const std::uint32_t index = (model.rotation + step) % count;
    if (!usable(model, index)) {
      continue;
    }
    if (!best || model.lanes[index].outstanding < model.lanes[*best].outstanding) {
      best = index;
    }
    if (!least_outstanding) {
      break;
    }
  }
  if (best) {
    model.rotation = *best + 1;
  }
  return best;
}

std::optional<std::uint32_t> Dispatcher::random_usable(const Model& model, std::uint32_t except,
                                                       std::uint32_t candidates) {
  std::uint64_t skip = prng_.below(candidates);
  for (std::uint32_t index = 0; index < replicas_.size(); ++index) {
    if (index != except && usable(model, index) && skip-- == 0) {
      return index;
    }
  }
  return std::nullopt;
}

std::optional<std::uint32_t> Dispatcher::pick_random(const Model& model) {
  std::uint32_t candidates = 0;
  for (std::uint32_t index = 0; index < replicas_.size(); ++index) {
    candidates += usable(model, index) ? 1 : 0;
  }
  return candidates == 0 ? std::nullopt : random_usable(model, kNobody, candidates);
}

std::optional<std::uint32_t> Dispatcher::pick_of_two(const Model& model) {
  std::uint32_t candidates = 0;
  for (std::uint32_t index = 0; index < replicas_.size(); ++index) {
    candidates += usable(model, index) ? 1 : 0;
  }
  if (candidates == 0) {
    return std::nullopt;
  }
  const std::optional<std::uint32_t> first = random_usable(model, kNobody, candidates);
  if (candidates == 1) {
    return first;
  }
  const std::optional<std::uint32_t> second = random_usable(model, *first, candidates - 1);
  return model.lanes[*second].outstanding < model.lanes[*first].outstanding ? second : first;
}

void Dispatcher::choose_bound(Model& model) {
  if (options_.fixed_bound > 0 || model.mean_seconds <= 0) {
    return;
  }
  const double ratio = to_seconds(round_trip_) / model.mean_seconds;
  const double calm = model.bound == 1 ? kBusy : kCalm;
  const bool one =
      ratio <= kAlwaysOneBelow || (ratio <= kOneWhenCalmBelow && model.busy_share <= calm);
  model.bound = one ? 1 : 2 + static_cast<std::uint32_t>(std::min(ratio, kLongestPipe));
}

void Dispatcher::eject_if_slow(Instant now, Model& model, std::uint32_t replica) {
  Lane& lane = model.lanes[replica];
  std::uint32_t peers = 0;
  std::uint32_t far_faster = 0;
  std::uint32_t ejected = 0;
  for (std::uint32_t index = 0; index < replicas_.size(); ++index) {
    if (index == replica || !replicas_[index].present) {
      continue;
    }
    ejected += replicas_[index].health.state() == ReplicaState::kEjected ? 1 : 0;
    if (model.lanes[index].learned.known()) {
      ++peers;
      const double limit = kSlowShare * model.lanes[index].learned.per_second();
      far_faster += lane.learned.per_second() < limit ? 1 : 0;
    }
  }
  // Slower than 0.2 x the median of the others = 0.2 x slower than half of them.
  const bool slow = peers > 0 && 2 * far_faster >= peers + 1;
  lane.slow_in_a_row = slow ? lane.slow_in_a_row + 1 : 0;
  if (lane.slow_in_a_row < kSlowReplies || 2 * (ejected + 1) > peers + 1) {
    return;
  }
  lane.slow_in_a_row = 0;
  replicas_[replica].health.too_slow(now);
  count_up();
}

bool Dispatcher::makes_deadline(Instant now, const Model& model, Instant deadline) const {
  double total = 0;
  double fastest = 0;
  for (std::uint32_t index = 0; index < replicas_.size(); ++index) {
    if (usable(model, index) && model.lanes[index].learned.known()) {
      total += speed(model, index);
      fastest = std::max(fastest, speed(model, index));
    }
  }
  if (fastest <= 0) {
    return true;  // nothing is known yet
  }
  const double wait = static_cast<double>(model.queue.size()) / total + 1 / fastest;
  return now + from_seconds(wait) <= deadline;
}

}  // namespace septet::balance
