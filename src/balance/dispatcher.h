// Dispatcher: decides which replica gets which request, and when.
//
//   arrive() -> queue of the model -> next() -> replica -> completed() | failed() -> queue again
//
// A state machine without I/O; time is an argument. Owned by one reactor and used by its thread.
// The caller reports what happened, then calls next() and next_refused() until they give nothing,
// and both again, and run probes, at next_deadline() at the latest.
//
// Invariants, checked: a ticket is free, queued at one model, or outstanding at one replica; a
// lane's outstanding equals the tickets outstanding there; with kPull a lane never has more than
// bound x instances batches, none larger than its cap; a draining or ejected replica gets nothing.
//
// Costs: O(log queued) per event plus one pass over the replicas (a few dozen, contiguous); no
// allocation once the largest number of requests in the system has been seen.
//
// The rule of kPull is JBSQ(n) with n in batches (Kogias et al., R2P2, ATC'19). n is 1 while the
// round trip between proxy and replica is small against the service time, else 2, and one more for
// every service that a round trip is long:
// n = 1 if r/S <= 0.005, or if r/S <= 0.04 and at most 0.8 of the replicas are busy; else
// 2 + floor(r/S). Until a far replica is kept busy, S is what its time between completions was, so
// n grows step by step. A replica that batches takes what waits, up to its cap, in one go; what
// arrives later waits for the next batch.
//
// Hedging (Dean and Barroso, The Tail at Scale, CACM'13), off by default: a request that has been
// at a replica for longer than a learned percentile of its model and size is sent once more, to a
// replica that has nothing at all while nothing of that model is queued, so a hedge never makes
// anyone wait that is here. Each completed request pays for a share of one. The first answer
// counts. The loser keeps its place until its reply is here too, as its replica is busy for so
// long; that time goes into the learned speed and not into the percentile, its reply into no count.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "balance/learned_latency.h"
#include "balance/learned_speed.h"
#include "balance/policy.h"
#include "balance/replica_health.h"
#include "balance/tenant_queues.h"
#include "base/id.h"
#include "base/prng.h"
#include "base/time.h"

namespace septet::balance {

using ReplicaIndex = Id<struct ReplicaIndexTag, std::uint32_t>;  // reused after removal
using ModelIndex = Id<struct ModelIndexTag, std::uint32_t>;      // never reused
using Ticket = Id<struct TicketTag, std::uint32_t>;              // reused after the request ended

class Dispatcher {
 public:
  struct Options {
    Policy policy = Policy::kPull;
    std::uint32_t max_queued = 4096;       // per model; more are refused
    std::uint32_t max_tries = 3;           // of one request, counting those that reached a replica
    std::uint32_t fixed_bound = 0;         // n of kPull; 0 = by the rule above
    std::uint32_t max_outstanding = 1024;  // per replica and model, for the policies without bound
    bool learn_speed = true;               // false: speeds stay as set_speed() said (simulation)
    double hedge_percentile = 0;           // as a share, 0.95; 0 = no hedging
    double hedge_budget = 0.05;            // hedges per completed request, in the long run
    std::uint64_t seed = 1;
  };
  struct Arrival {
    ModelIndex model;
    Instant deadline{};               // the reply is worthless afterwards
    std::uint32_t priority = 0;       // lower is more urgent
    std::uint32_t tenant = 0;         // below TenantQueues::kMaxTenants
    bool deadline_is_strict = false;  // the client set it: refuse at once what cannot make it
    bool may_be_hedged = false;       // it changes nothing at the replica
    std::uint64_t bytes = 0;          // of its body; latencies of like sizes are compared
    // The one replica that may have it. It is sent at once and takes no place of a batch: what else
    // is there may be waiting for this very request.
    std::optional<ReplicaIndex> only{};
    std::uint64_t cookie = 0;  // handed back with every decision
  };
  enum class Refusal { kQueueFull, kDeadline, kNoReplica, kGivenUp };
  struct Admission {
    std::optional<Refusal> refused;  // nothing was queued
    Ticket ticket;
  };
  struct Assignment {
    Ticket ticket;
    std::uint64_t cookie = 0;
    ReplicaIndex replica;
  };
  struct Refused {
    std::uint64_t cookie = 0;
    Refusal why = Refusal::kDeadline;
  };
  struct Hedges {               // how those that have ended did so
    std::uint64_t won = 0;      // the copy was answered first
    std::uint64_t lost = 0;     // the original was
    std::uint64_t failed = 0;   // the copy got no reply
    std::uint64_t dropped = 0;  // the client went away
  };
  struct ReplicaView {
    ReplicaState state = ReplicaState::kJoining;
    std::uint32_t outstanding = 0;
    std::uint32_t pinned = 0;
    std::uint64_t completed = 0;
    std::uint64_t failed = 0;
    std::uint64_t ejections = 0;
    Duration busy{};        // with at least one request outstanding
    double per_second = 0;  // learned speed on the model it has answered most; 0 = unknown
  };

  static constexpr Duration kRoundTrip = microseconds(100);

  explicit Dispatcher(Options options);

  ModelIndex add_model();
  ReplicaIndex add_replica(Instant now);
  // Gives the replica nothing more. Once idle() it may be removed.
  void drain(ReplicaIndex replica);
  bool idle(ReplicaIndex replica) const;
  void remove(ReplicaIndex replica);
  // Whether the replica serves the model; true until said otherwise.
  void set_eligible(ReplicaIndex replica, ModelIndex model, bool eligible);
  // How many batches the replica runs at a time on that model, and the largest it forms; >= 1.
  void set_capacity(ReplicaIndex replica, ModelIndex model, std::uint32_t instances,
                    std::uint32_t batch_cap);
  // Requests per second to start from; learning replaces it.
  void set_speed(ReplicaIndex replica, ModelIndex model, double per_second);
  // From handing over to the start of work, and from its end to our notice, together; kRoundTrip,
  // that of a replica on the same machine, until it is said.
  void set_round_trip(Duration round_trip) { round_trip_ = round_trip; }

  Admission arrive(Instant now, const Arrival& arrival);
  // The next request to send, if there is one and a replica has room.
  std::optional<Assignment> next(Instant now);
  // A request to send a second time, after next() gave nothing. The copy has a ticket of its own,
  // which is reported like any other.
  std::optional<Assignment> next_hedge(Instant now);
  // The next queued request that has to be answered with an error.
  std::optional<Refused> next_refused(Instant now);
  // The same for those whose deadline passed behind a more urgent head; looks at all of them, so a
  // few times a second is enough.
  std::optional<Refused> next_late(Instant now);
  // A whole reply came. The ticket ends; of two copies the other one is the loser, whose reply
  // still has to be reported.
  void completed(Instant now, Ticket ticket);
  // No reply came. True: queued again at its old place. False: the ticket ended, or, of two copies,
  // the other one goes on.
  [[nodiscard]] bool failed(Instant now, Ticket ticket, Failure failure);
  // The client went away. True: it was queued and the ticket ended. False: it is at a replica,
  // whose reply (completed or failed with repeatable false) still has to be reported.
  [[nodiscard]] bool cancel(Ticket ticket);
  // The request may not be sent again: part of a reply has been passed on, or the client is gone.
  void forbid_repeat(Ticket ticket);
  // Of two copies this one is being answered, so that the other one is the loser. Else nothing.
  void prefer(Instant now, Ticket ticket);

  // The replica for something long that stays with it until unpin(), whose single requests are not
  // seen here and take no place: the one with the fewest such, of those that are up and eligible
  // for the model. Nothing when there is none.
  std::optional<ReplicaIndex> pin(ModelIndex model);
  // The same at a given replica.
  void pin_at(ReplicaIndex replica) { ++replicas_[replica.value()].pinned; }
  void unpin(ReplicaIndex replica);
  // What is pinned there was lost.
  void pinned_failed(Instant now, ReplicaIndex replica, Failure failure);

  // A replica that should be asked for its health now, at most once until the answer is reported.
  std::optional<ReplicaIndex> next_probe(Instant now);
  void probe_succeeded(ReplicaIndex replica);
  void probe_failed(Instant now, ReplicaIndex replica);

  // When something is due without an event; nothing if never.
  std::optional<Instant> next_deadline() const;

  // now: until when a replica that is busy has been so; without it, until it was idle last.
  ReplicaView view(ReplicaIndex replica, Instant now = {}) const;
  std::uint64_t queued() const { return queued_; }
  std::uint64_t queued(ModelIndex model) const { return models_[model.value()].queue.size(); }
  std::uint64_t outstanding() const { return outstanding_; }
  std::uint64_t retries() const { return retries_; }
  const Hedges& hedges() const { return hedges_; }
  std::uint32_t bound(ModelIndex model) const { return models_[model.value()].bound; }
  bool any_up() const { return up_ > 0; }

 private:
  static constexpr std::uint32_t kNoPlace = ~0U;
  static constexpr std::uint32_t kNoTicket = ~0U;

  struct Batch {             // requests that went to a replica in one go
    std::uint32_t left = 0;  // without a reply yet; 0 = the place is free
    std::uint32_t size = 0;
    Instant sent{};
  };
  struct Lane {  // one replica on one model
    bool eligible = true;
    std::uint32_t instances = 1;
    std::uint32_t batch_cap = 1;
    std::uint32_t outstanding = 0;  // requests
    std::uint32_t batches = 0;      // outstanding
    std::vector<Batch> places;      // memory kept
    std::uint32_t open = kNoPlace;  // the batch that may still grow, while it is opened_at
    Instant opened_at{};
    std::uint64_t completed = 0;
    double set_speed = 0;
    LearnedSpeed learned;
    Instant last_completion{};
    std::uint32_t slow_in_a_row = 0;
  };
  struct SizeClass {  // requests of a model whose bodies are of about one size
    LearnedLatency latency;
    std::uint32_t oldest = kNoTicket;  // of those at a replica that may be hedged
    std::uint32_t newest = kNoTicket;
  };
  struct Model {
    TenantQueues queue;
    std::vector<Lane> lanes;  // by replica
    std::uint32_t bound = 1;
    std::uint32_t rotation = 0;  // round robin and ties
    std::uint32_t busy = 0;      // lanes with something outstanding
    double busy_share = 0;       // moving average over arrivals
    double mean_seconds = 0;     // of a service, moving average over all replicas
    std::uint64_t completions = 0;
    std::vector<SizeClass> sizes;  // with hedging
  };
  struct Replica {
    bool present = false;
    ReplicaHealth health{Instant{}};
    std::uint32_t outstanding = 0;
    std::uint32_t pinned = 0;
    std::uint64_t completed = 0;
    std::uint64_t failed = 0;
    Instant busy_since{};
    Duration busy{};
  };
  enum class Copy { kOnly, kFirst, kSecond, kLoser };
  struct Request {
    enum class State { kFree, kQueued, kOutstanding };
    State state = State::kFree;
    bool repeatable = true;
    bool direct = false;  // for one replica only
    std::uint32_t model = 0;
    std::uint32_t replica = 0;
    std::uint32_t place = kNoPlace;  // of its batch
    std::uint32_t tries = 0;
    std::uint32_t tenant = 0;
    DeadlineQueue::Entry entry;
    std::uint64_t cookie = 0;
    Instant sent{};
    Copy copy = Copy::kOnly;
    bool may_be_hedged = false;
    bool listed = false;  // in its size class
    std::uint8_t size_class = 0;
    std::uint32_t older = kNoTicket;  // of its size class
    std::uint32_t newer = kNoTicket;
    std::uint32_t other = kNoTicket;  // copy of the same request, while both may win
  };

  std::uint32_t new_ticket();
  void free_ticket(Request& request);
  void enqueue(Request& request);
  void enter_replica(Instant now, Request& request, std::uint32_t replica);
  void join_batch(Instant now, Lane& lane, Request& request);
  void leave_replica(Instant now, Request& request);
  void learn(Instant now, const Request& request);
  void may_hedge(Request& request);
  void never_hedge(Request& request);
  bool lose_copy(Request& request);  // true: the other one goes on
  void drop_hedge(Request& request);
  void part(Request& request);
  void win(Instant now, Request& request);
  void observe(const Request& request, Duration took);
  void settle_hedge(Instant now, Request& request);
  std::optional<std::uint32_t> fastest_idle(const Model& model) const;
  std::optional<Instant> next_hedge_due() const;
  void choose_bound(Model& model);
  void eject_if_slow(Instant now, Model& model, std::uint32_t replica);
  void count_up();

  bool usable(const Model& model, std::uint32_t replica) const;
  static bool grows(Instant now, const Lane& lane);
  double speed(const Model& model, std::uint32_t replica) const;
  std::optional<std::uint32_t> pick(Instant now, Model& model);
  std::optional<std::uint32_t> pick_pull(Instant now, const Model& model) const;
  std::optional<std::uint32_t> pick_least(const Model& model, bool bounded) const;
  std::optional<std::uint32_t> pick_rotating(Model& model, bool least_outstanding);
  std::optional<std::uint32_t> pick_random(const Model& model);
  std::optional<std::uint32_t> pick_of_two(const Model& model);
  std::optional<std::uint32_t> random_usable(const Model& model, std::uint32_t except,
                                             std::uint32_t candidates);
  bool makes_deadline(Instant now, const Model& model, Instant deadline) const;
  bool hopeless(Instant now) const;

  Options options_;
  Prng prng_;
  std::vector<Model> models_;
  std::vector<Replica> replicas_;
  std::vector<Request> requests_;
  std::vector<std::uint32_t> free_tickets_;
  std::vector<std::uint32_t> direct_;  // until next()
  std::uint64_t sequence_ = 0;
  std::uint64_t queued_ = 0;
  std::uint64_t outstanding_ = 0;
  std::uint64_t retries_ = 0;
  std::uint32_t up_ = 0;
  std::uint32_t down_ = 0;        // joining or ejected
  std::uint32_t next_model_ = 0;  // where next() goes on, so no model waits for another
  double retry_tokens_;
  double hedge_tokens_ = 0;
  std::uint32_t listed_ = 0;  // requests that may be hedged
  Hedges hedges_;
  Duration round_trip_ = kRoundTrip;
};

}  // namespace septet::balance
