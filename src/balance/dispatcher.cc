#include "balance/dispatcher.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace septet::balance {

namespace {

// Retries are paid from a bucket, so that a sick set of replicas is not sent the load twice:
// one tenth of a token per completed request, at most so many saved.
constexpr double kRetryTokens = 1024;
constexpr double kRetryTokensPerCompletion = 0.1;
constexpr double kBusyShareWeight = 1.0 / 256;
constexpr double kMeanWeight = 1.0 / 64;
constexpr std::uint64_t kCompletionsPerBoundChoice = 64;

// Bodies within a factor of eight are of one size.
constexpr std::size_t kSizeClasses = 12;

std::uint8_t size_class(std::uint64_t bytes) {
  return static_cast<std::uint8_t>(
      std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(bytes)) / 3, kSizeClasses - 1));
}

}  // namespace

Dispatcher::Dispatcher(Options options)
    : options_(options), prng_(options.seed), retry_tokens_(kRetryTokens) {}

ModelIndex Dispatcher::add_model() {
  models_.emplace_back();
  models_.back().lanes.resize(replicas_.size());
  models_.back().bound = std::max(1U, options_.fixed_bound);
  if (options_.hedge_percentile > 0) {
    models_.back().sizes.resize(kSizeClasses, SizeClass{LearnedLatency(options_.hedge_percentile)});
  }
  return ModelIndex(static_cast<std::uint32_t>(models_.size() - 1));
}

ReplicaIndex Dispatcher::add_replica(Instant now) {
  std::uint32_t index = 0;
  while (index < replicas_.size() && replicas_[index].present) {
    ++index;
  }
  if (index == replicas_.size()) {
    replicas_.emplace_back();
  }
  replicas_[index] = Replica{};
  replicas_[index].present = true;
  replicas_[index].health = ReplicaHealth(now);
  for (Model& model : models_) {
    model.lanes.resize(replicas_.size());
    model.lanes[index] = Lane{};
  }
  count_up();
  return ReplicaIndex(index);
}

void Dispatcher::drain(ReplicaIndex replica) {
  replicas_[replica.value()].health.drain();
  count_up();
}

bool Dispatcher::idle(ReplicaIndex replica) const {
  return replicas_[replica.value()].outstanding == 0 && replicas_[replica.value()].pinned == 0;
}

void Dispatcher::remove(ReplicaIndex replica) {
  CHECK(idle(replica));
  replicas_[replica.value()].present = false;
  count_up();
}

void Dispatcher::set_eligible(ReplicaIndex replica, ModelIndex model, bool eligible) {
  models_[model.value()].lanes[replica.value()].eligible = eligible;
}

void Dispatcher::set_capacity(ReplicaIndex replica, ModelIndex model, std::uint32_t instances,
                              std::uint32_t batch_cap) {
  Lane& lane = models_[model.value()].lanes[replica.value()];
  lane.instances = std::max(1U, instances);
  lane.batch_cap = std::max(1U, batch_cap);
}

void Dispatcher::set_speed(ReplicaIndex replica, ModelIndex model, double per_second) {
  models_[model.value()].lanes[replica.value()].set_speed = per_second;
}

Dispatcher::Admission Dispatcher::arrive(Instant now, const Arrival& arrival) {
  Model& model = models_[arrival.model.value()];
  model.busy_share +=
      kBusyShareWeight * (static_cast<double>(model.busy) / std::max(1U, up_) - model.busy_share);
  if (hopeless(now)) {
    return {Refusal::kNoReplica, Ticket{}};
  }
  if (model.queue.size() >= options_.max_queued) {
    return {Refusal::kQueueFull, Ticket{}};
  }
  if (arrival.deadline <= now ||
      (arrival.deadline_is_strict && !makes_deadline(now, model, arrival.deadline))) {
    return {Refusal::kDeadline, Ticket{}};
  }
  if (arrival.only && !replicas_[arrival.only->value()].present) {
    return {Refusal::kNoReplica, Ticket{}};
  }
  const std::uint32_t ticket = new_ticket();
  Request& request = requests_[ticket];
  request = Request{};
  request.state = Request::State::kQueued;
  request.model = arrival.model.value();
  request.cookie = arrival.cookie;
  request.entry = {arrival.priority, arrival.deadline, ++sequence_, ticket};
  request.tenant = arrival.tenant;
  request.may_be_hedged = arrival.may_be_hedged && options_.hedge_percentile > 0;
  request.size_class = size_class(arrival.bytes);
  request.direct = arrival.only.has_value();
  request.replica = arrival.only.value_or(ReplicaIndex(0)).value();
  enqueue(request);
  return {std::nullopt, Ticket(ticket)};
}

void Dispatcher::enqueue(Request& request) {
  request.state = Request::State::kQueued;
  ++queued_;
  if (request.direct) {
    direct_.push_back(request.entry.ticket);
  } else {
    models_[request.model].queue.push(request.tenant, request.entry);
  }
}

std::optional<Dispatcher::Assignment> Dispatcher::next(Instant now) {
  if (!direct_.empty()) {
    Request& request = requests_[direct_.front()];
    direct_.erase(direct_.begin());
    --queued_;
    enter_replica(now, request, request.replica);
    return Assignment{Ticket(request.entry.ticket), request.cookie, ReplicaIndex(request.replica)};
  }
  if (queued_ == 0 || up_ == 0) {
    return std::nullopt;
  }
  const auto count = static_cast<std::uint32_t>(models_.size());
  for (std::uint32_t step = 0; step < count; ++step) {
    const std::uint32_t index = (next_model_ + step) % count;
    Model& model = models_[index];
    if (model.queue.empty() || model.queue.head().deadline <= now) {
      continue;  // next_refused() takes the late head first
    }
    const std::optional<std::uint32_t> replica = pick(now, model);
    if (!replica) {
      continue;
    }
    next_model_ = index + 1;
    Request& request = requests_[model.queue.pop().ticket];
    --queued_;
    enter_replica(now, request, *replica);
    return Assignment{Ticket(request.entry.ticket), request.cookie, ReplicaIndex(*replica)};
  }
  return std::nullopt;
}

std::optional<Dispatcher::Refused> Dispatcher::next_refused(Instant now) {
  if (queued_ == 0) {
    return std::nullopt;
  }
  const bool none_left = hopeless(now);
  for (Model& model : models_) {
    if (model.queue.empty() || (!none_left && model.queue.head().deadline > now)) {
      continue;
    }
    Request& request = requests_[model.queue.pop().ticket];
    --queued_;
    const Refused refused{request.cookie, none_left ? Refusal::kNoReplica : Refusal::kDeadline};
    free_ticket(request);
    return refused;
  }
  return std::nullopt;
}

std::optional<Dispatcher::Refused> Dispatcher::next_late(Instant now) {
  for (Model& model : models_) {
    if (const std::optional<DeadlineQueue::Entry> late = model.queue.take_late(now)) {
      Request& request = requests_[late->ticket];
      --queued_;
      const Refused refused{request.cookie, Refusal::kDeadline};
      free_ticket(request);
      return refused;
    }
  }
  return std::nullopt;
}

void Dispatcher::completed(Instant now, Ticket ticket) {
  Request& request = requests_[ticket.value()];
  CHECK(request.state == Request::State::kOutstanding);
  Replica& replica = replicas_[request.replica];
  replica.completed += request.copy == Copy::kLoser ? 0 : 1;
  replica.health.succeeded();
  retry_tokens_ = std::min(kRetryTokens, retry_tokens_ + kRetryTokensPerCompletion);
  settle_hedge(now, request);
  learn(now, request);
  leave_replica(now, request);
  free_ticket(request);
}

bool Dispatcher::failed(Instant now, Ticket ticket, Failure failure) {
  Request& request = requests_[ticket.value()];
  CHECK(request.state == Request::State::kOutstanding);
  Replica& replica = replicas_[request.replica];
  leave_replica(now, request);
  const bool reached = failure == Failure::kConnectionLost || failure == Failure::kBadReply ||
                       failure == Failure::kTimedOut;
  if (failure != Failure::kStaleConnection) {
    ++replica.failed;
    replica.health.failed(now, failure);
    count_up();
  }
  request.tries -= reached ? 0 : 1;
  if (lose_copy(request)) {
    free_ticket(request);
    return false;
  }
  const bool replica_may_have_it = !request.direct || failure == Failure::kStaleConnection;
  const bool again = request.repeatable && failure != Failure::kTimedOut && replica_may_have_it &&
                     request.tries < options_.max_tries && request.entry.deadline > now &&
                     retry_tokens_ >= 1 && !hopeless(now);
  if (!again) {
    free_ticket(request);
    return false;
  }
  retry_tokens_ -= reached ? 1 : 0;
  ++retries_;
  enqueue(request);
  return true;
}

bool Dispatcher::cancel(Ticket ticket) {
  Request& request = requests_[ticket.value()];
  CHECK(request.state != Request::State::kFree);
  request.repeatable = false;
  if (request.state == Request::State::kOutstanding) {
    drop_hedge(request);
    return false;
  }
  CHECK(request.direct ? std::erase(direct_, ticket.value()) == 1
                       : models_[request.model].queue.erase(request.tenant, ticket.value()));
  --queued_;
  free_ticket(request);
  return true;
}

void Dispatcher::forbid_repeat(Ticket ticket) {
  Request& request = requests_[ticket.value()];
  request.repeatable = false;
  never_hedge(request);
}

std::optional<Instant> Dispatcher::next_deadline() const {
  std::optional<Instant> first;
  const auto consider = [&first](Instant when) { first = first ? std::min(*first, when) : when; };
  for (std::size_t index = 0; down_ > 0 && index < replicas_.size(); ++index) {
    const Replica& replica = replicas_[index];
    if (replica.present && replica.health.awaits_probe()) {
      consider(replica.health.probe_at());
    }
    if (queued_ > 0 && up_ == 0 && replica.present && replica.health.hope_until() > Instant{}) {
      consider(replica.health.hope_until());
    }
  }
  for (const Model& model : models_) {
    if (!model.queue.empty()) {
      consider(model.queue.head().deadline);
    }
  }
  if (const std::optional<Instant> hedge = next_hedge_due()) {
    consider(*hedge);
  }
  return first;
}

std::uint32_t Dispatcher::new_ticket() {
  if (free_tickets_.empty()) {
    requests_.emplace_back();
    return static_cast<std::uint32_t>(requests_.size() - 1);
  }
  const std::uint32_t ticket = free_tickets_.back();
  free_tickets_.pop_back();
  return ticket;
}

void Dispatcher::free_ticket(Request& request) {
  request.state = Request::State::kFree;
  free_tickets_.push_back(request.entry.ticket);
}

void Dispatcher::enter_replica(Instant now, Request& request, std::uint32_t replica) {
  Model& model = models_[request.model];
  Lane& lane = model.lanes[replica];
  Replica& chosen = replicas_[replica];
  request.state = Request::State::kOutstanding;
  request.replica = replica;
  request.sent = now;
  ++request.tries;
  model.busy += lane.outstanding++ == 0 ? 1 : 0;
  if (chosen.outstanding++ == 0) {
    chosen.busy_since = now;
  }
  if (options_.policy == Policy::kPull && !request.direct) {
    join_batch(now, lane, request);
  }
  may_hedge(request);
  ++outstanding_;
}

void Dispatcher::join_batch(Instant now, Lane& lane, Request& request) {
  if (!grows(now, lane)) {
    lane.open = 0;
    while (lane.open < lane.places.size() && lane.places[lane.open].left > 0) {
      ++lane.open;
    }
    if (lane.open == lane.places.size()) {
      lane.places.emplace_back();
    }
    lane.places[lane.open] = Batch{0, 0, now};
    lane.opened_at = now;
    ++lane.batches;
  }
  Batch& batch = lane.places[lane.open];
  ++batch.left;
  ++batch.size;
  request.place = lane.open;
}

void Dispatcher::leave_replica(Instant now, Request& request) {
  Model& model = models_[request.model];
  Lane& lane = model.lanes[request.replica];
  Replica& replica = replicas_[request.replica];
  CHECK(lane.outstanding > 0 && replica.outstanding > 0);
  never_hedge(request);
  model.busy -= --lane.outstanding == 0 ? 1 : 0;
  if (request.place != kNoPlace && --lane.places[request.place].left == 0) {
    --lane.batches;
    lane.open = lane.open == request.place ? kNoPlace : lane.open;
  }
  request.place = kNoPlace;
  if (--replica.outstanding == 0) {
    replica.busy += now - replica.busy_since;
  }
  --outstanding_;
}

void Dispatcher::learn(Instant now, const Request& request) {
  Model& model = models_[request.model];
  Lane& lane = model.lanes[request.replica];
  ++lane.completed;
  ++model.completions;
  if (request.place != kNoPlace && lane.places[request.place].left > 1) {
    return;  // a batch is judged when its last reply is here
  }
  const bool batched = request.place != kNoPlace;
  const std::uint32_t requests = batched ? lane.places[request.place].size : 1;
  const Instant sent = batched ? lane.places[request.place].sent : request.sent;
  // With several at a time the time between completions is what one of them took.
  const Duration busy = now - std::max(sent, lane.last_completion);
  lane.last_completion = now;
  if (!options_.learn_speed) {
    return;
  }
  lane.learned.observe(requests, busy);
  const double weight = std::max(kMeanWeight, 1.0 / static_cast<double>(model.completions));
  model.mean_seconds += weight * (to_seconds(busy) - model.mean_seconds);
  eject_if_slow(now, model, request.replica);
  if (model.completions % kCompletionsPerBoundChoice < requests) {
    choose_bound(model);
  }
}

}  // namespace septet::balance
