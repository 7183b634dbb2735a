// Hedging: a request that takes long is sent to an idle replica once more. See dispatcher.h.

#include <algorithm>

#include "balance/dispatcher.h"
#include "base/check.h"

namespace septet::balance {

namespace {

constexpr double kMostHedgeTokens = 10;  // hedges in a row after a calm time

}  // namespace

// Puts a request that was sent now at the end of its size class: the first is the first that is
// due.
void Dispatcher::may_hedge(Request& request) {
  if (!request.may_be_hedged || !request.repeatable || request.copy != Copy::kOnly) {
    return;
  }
  SizeClass& size = models_[request.model].sizes[request.size_class];
  const std::uint32_t ticket = request.entry.ticket;
  request.listed = true;
  request.older = size.newest;
  request.newer = kNoTicket;
  (size.newest == kNoTicket ? size.oldest : requests_[size.newest].newer) = ticket;
  size.newest = ticket;
  ++listed_;
}

void Dispatcher::never_hedge(Request& request) {
  if (!request.listed) {
    return;
  }
  SizeClass& size = models_[request.model].sizes[request.size_class];
  (request.older == kNoTicket ? size.oldest : requests_[request.older].newer) = request.newer;
  (request.newer == kNoTicket ? size.newest : requests_[request.newer].older) = request.older;
  request.listed = false;
  --listed_;
}

// The two copies know nothing of each other any more.
void Dispatcher::part(Request& request) {
  requests_[request.other].other = kNoTicket;
  request.other = kNoTicket;
}

// It got no reply. One that was alone in the end is an ordinary request from here on.
bool Dispatcher::lose_copy(Request& request) {
  if (request.copy == Copy::kSecond) {
    ++hedges_.failed;
    request.copy = Copy::kFirst;
  }
  if (request.other == kNoTicket) {
    return false;
  }
  part(request);
  return true;
}

// Nobody waits for it.
void Dispatcher::drop_hedge(Request& request) {
  never_hedge(request);
  const bool both = request.other != kNoTicket;
  if (!both && request.copy != Copy::kSecond) {
    return;
  }
  ++hedges_.dropped;
  (request.copy == Copy::kSecond ? request : requests_[request.other]).copy = Copy::kLoser;
  if (both) {
    requests_[request.other].repeatable = false;
    part(request);
  }
}

// Of all models, so that what is sent there waits for nobody.
std::optional<std::uint32_t> Dispatcher::fastest_idle(const Model& model) const {
  std::optional<std::uint32_t> best;
  for (std::uint32_t index = 0; index < replicas_.size(); ++index) {
    if (replicas_[index].outstanding == 0 && usable(model, index) &&
        (!best || speed(model, index) > speed(model, *best))) {
      best = index;
    }
  }
  return best;
}

std::optional<Instant> Dispatcher::next_hedge_due() const {
  std::optional<Instant> first;
  if (listed_ == 0 || hedge_tokens_ < 1) {
    return first;
  }
  for (const Model& model : models_) {
    if (!model.queue.empty() || !fastest_idle(model)) {
      continue;  // an event comes before it can be
    }
    for (const SizeClass& size : model.sizes) {
      const std::optional<Duration> limit = size.latency.percentile();
      if (size.oldest != kNoTicket && limit) {
        const Instant due = requests_[size.oldest].sent + *limit;
        first = first ? std::min(*first, due) : due;
      }
    }
  }
  return first;
}

std::optional<Dispatcher::Assignment> Dispatcher::next_hedge(Instant now) {
  if (listed_ == 0 || hedge_tokens_ < 1) {
    return std::nullopt;
  }
  for (Model& model : models_) {
    for (SizeClass& size : model.sizes) {
      const std::optional<Duration> limit = size.latency.percentile();
      if (size.oldest == kNoTicket || !limit || requests_[size.oldest].sent + *limit > now) {
        continue;
      }
      const std::optional<std::uint32_t> replica = fastest_idle(model);
      if (!model.queue.empty() || !replica) {
        break;
      }
      hedge_tokens_ -= 1;
      const std::uint32_t first = size.oldest;
      const std::uint32_t second = new_ticket();  // may move the requests
      never_hedge(requests_[first]);
      requests_[first].copy = Copy::kFirst;
      requests_[first].other = second;
      Request& copy = requests_[second] = requests_[first];
      copy.copy = Copy::kSecond;
      copy.other = first;
      copy.entry.ticket = second;
      copy.place = kNoPlace;
      enter_replica(now, copy, *replica);
      return Assignment{Ticket(second), copy.cookie, ReplicaIndex(*replica)};
    }
  }
  return std::nullopt;
}

void Dispatcher::prefer(Instant now, Ticket ticket) {
  Request& request = requests_[ticket.value()];
  if (request.other != kNoTicket) {
    win(now, request);
  }
}

// A reply has come: pays for hedges, and decides between two copies.
void Dispatcher::settle_hedge(Instant now, Request& request) {
  if (request.copy == Copy::kLoser) {
    return;
  }
  hedge_tokens_ = std::min(kMostHedgeTokens, hedge_tokens_ + options_.hedge_budget);
  if (request.other != kNoTicket || request.copy == Copy::kSecond) {
    win(now, request);
  }
  observe(request, now - request.sent);
}

// What the first took, or at least took, is what a request takes without hedging; the time of a
// second says nothing of that.
void Dispatcher::win(Instant now, Request& request) {
  const bool second = request.copy == Copy::kSecond;
  hedges_.won += second ? 1 : 0;
  hedges_.lost += second ? 0 : 1;
  request.copy = Copy::kFirst;  // it is counted
  if (request.other != kNoTicket) {
    Request& loser = requests_[request.other];
    CHECK(loser.state == Request::State::kOutstanding);
    loser.copy = Copy::kLoser;
    loser.repeatable = false;
    if (second) {
      observe(loser, now - loser.sent);
    }
    part(request);
  }
  request.may_be_hedged = request.may_be_hedged && !second;
}

void Dispatcher::observe(const Request& request, Duration took) {
  if (request.may_be_hedged) {
    models_[request.model].sizes[request.size_class].latency.observe(took);
  }
}

}  // namespace septet::balance
