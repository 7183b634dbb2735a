#include "balance/edge/reactor.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "balance/edge/client_connection.h"
#include "balance/edge/http2_connection.h"
#include "os/endpoint.h"

namespace septet::balance {

namespace {

constexpr std::size_t kBodyInBufferBytes = 32 * 1024;
constexpr int kAcceptsPerRound = 64;
constexpr Duration kSweepEvery = milliseconds(250);
constexpr Duration kAcceptPause = milliseconds(100);
constexpr std::uint64_t kSweepsPerStatistics = 20;  // 5 s
constexpr std::uint64_t kSweepsPerBusyShare = 4;    // 1 s

Dispatcher::Options dispatcher_options(const ProxyOptions& options) {
  Dispatcher::Options result;
  result.policy = options.policy;
  result.max_queued = static_cast<std::uint32_t>(options.max_queued);
  result.hedge_percentile = options.hedge_percentile;
  result.hedge_budget = options.hedge_budget;
  result.seed = options.seed;
  return result;
}

}  // namespace

Reactor::Reactor(ProxyOptions options)
    : options_(std::move(options)),
      buffers_(options_.max_head_bytes + kBodyInBufferBytes),
      bodies_(options_.memory_bytes),
      dispatcher_(dispatcher_options(options_)) {
  add_model(Protocol::kHttp, "");
  add_model(Protocol::kGrpc, "");
}

Reactor::~Reactor() {
  // Clients first: they let go of their exchanges, then nothing refers to a connection's request.
  clients_.clear();
  retired_.clear();
  buried_.clear();
  replicas_.clear();
  for (const std::unique_ptr<Listener>& listener : listeners_) {
    loop_.unwatch(listener->fd.get());
    const auto index = static_cast<std::size_t>(&listener - listeners_.data());
    if (endpoints_[index].is_unix()) {
      ::unlink(endpoints_[index].unix_path.c_str());
    }
  }
}

Result<Ok> Reactor::listen() {
  if (!options_.access_log.empty()) {
    SEPTET_TRY(access_log_.open(options_.access_log, options_.access_log_every));
  }
  for (const os::Endpoint& endpoint : options_.listen) {
    Result<os::UniqueFd> fd = os::listen_on(endpoint);
    if (!fd.ok()) {
      return fd.error();
    }
    os::Endpoint real = os::local_endpoint(fd->get());
    endpoints_.push_back(endpoint.is_unix() ? endpoint : real);
    listeners_.push_back(std::make_unique<Listener>(
        *this, std::move(*fd), endpoint.is_unix() ? nullptr : options_.tls.get()));
    SEPTET_TRY(loop_.watch(listeners_.back()->fd.get(), EPOLLIN, *listeners_.back()));
  }
  return Ok{};
}

void Reactor::run() {
  loop_.call_after(kSweepEvery, [this] { sweep(); });
  loop_.run();
}

void Reactor::Listener::on_ready(std::uint32_t /*events*/) { reactor.accept_from(*this); }

void Reactor::accept_from(Listener& listener) {
  for (int i = 0; i < kAcceptsPerRound; ++i) {
    os::UniqueFd fd = os::accept_from(listener.fd.get());
    if (!fd.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        pause_accepting(listener);
      }
      return;
    }
    if (clients_.size() >= options_.max_connections) {
      continue;  // closed
    }
    auto client = std::make_unique<ClientConnection>(*this, std::move(fd), listener.tls);
    if (client->begin().ok()) {
      clients_.emplace(client.get(), std::move(client));
    }
  }
}

// Out of descriptors: the waiting client stays in the backlog, and the loop must not spin on it.
void Reactor::pause_accepting(Listener& listener) {
  loop_.unwatch(listener.fd.get());
  loop_.call_after(kAcceptPause, [this, &listener] {
    if (!loop_.watch(listener.fd.get(), EPOLLIN, listener).ok()) {
      pause_accepting(listener);
    }
  });
}

UpstreamConnection::Context Reactor::upstream_context() {
  return {loop_, buffers_, bodies_, {options_.max_head_bytes, options_.kept_reply_bytes}};
}

std::vector<Replica*> Reactor::replicas_up() {
  std::vector<Replica*> up;
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    if (replica && dispatcher_.view(replica->index()).state == ReplicaState::kUp) {
      up.push_back(replica.get());
    }
  }
  return up;
}

// Those beyond the first 62 share one place.
std::uint32_t Reactor::tenant_number(std::string_view name) {
  if (const auto found = tenants_.find(name); found != tenants_.end()) {
    return found->second;
  }
  const auto next = static_cast<std::uint32_t>(tenants_.size()) + 1;
  if (next + 1 >= TenantQueues::kMaxTenants) {
    return TenantQueues::kMaxTenants - 1;
  }
  tenants_.emplace(name, next);
  return next;
}

void Reactor::submit(Dispatched& request, const Submission& about) {
  Dispatcher::Arrival arrival;
  const RequestWishes& wishes = about.wishes;
  arrival.model = find_queue(about.protocol, about.model).index;
  arrival.deadline = request.deadline;
  arrival.deadline_is_strict = wishes.has_deadline();
  arrival.priority = wishes.priority;
  arrival.tenant = wishes.tenant.empty() ? 0 : tenant_number(wishes.tenant);
  arrival.may_be_hedged = request.may_be_hedged;
  arrival.bytes = about.body_bytes;
  arrival.cookie = std::bit_cast<std::uint64_t>(&request);
  request.hedge = Dispatched::Hedge::kNone;
  request.sequence.clear();
  if (!about.sequence.id.empty() && !join_sequence(request, about, arrival)) {
    return;
  }
  const Dispatcher::Admission admission = dispatcher_.arrive(now(), arrival);
  if (admission.refused) {
    refuse(request, *admission.refused);
  } else {
    request.ticket = admission.ticket;
  }
}

void Reactor::refuse(Dispatched& request, Dispatcher::Refusal why) {
  ++stats_.refused;
  request.ticket.reset();
  switch (why) {
    case Dispatcher::Refusal::kQueueFull:
      request.on_refused(503, "Exceeds maximum queue size; try again later");
      return;
    case Dispatcher::Refusal::kDeadline:
      request.on_refused(503, "Request timeout expired");
      return;
    case Dispatcher::Refusal::kNoReplica:
    case Dispatcher::Refusal::kGivenUp:
      request.on_refused(503, "no replica is ready; try again later");
      return;
  }
}

void Reactor::abandon(Exchange& exchange) {
  for (std::optional<Ticket>* const ticket : {&exchange.ticket, &exchange.rival.ticket}) {
    if (*ticket) {
      static_cast<void>(dispatcher_.cancel(**ticket));
      ticket->reset();
    }
  }
  drop_rival(exchange);
  if (exchange.connection != nullptr) {
    has_unwanted_ |= !exchange.connection->abandon();
  }
}

void Reactor::drop_rival(Exchange& exchange) {
  if (exchange.hedge == Dispatched::Hedge::kSent && exchange.ticket) {
    exchange.hedge =
        *exchange.ticket == exchange.copy ? Dispatched::Hedge::kWon : Dispatched::Hedge::kLost;
  }
  if (exchange.rival.connection != nullptr) {
    has_unwanted_ |= !exchange.rival.connection->abandon();
  }
  exchange.rival = {};
}

void Reactor::forbid_repeat(Dispatched& request) {
  if (request.ticket) {
    dispatcher_.forbid_repeat(*request.ticket);
  }
}

void Reactor::pump() {
  if (pumping_) {
    return;
  }
  pumping_ = true;
  if (has_unwanted_) {
    has_unwanted_ = false;
    for (const std::unique_ptr<Replica>& replica : replicas_) {
      if (replica) {
        replica->close_unwanted();
      }
    }
  }
  if (memory_released_ && !waiting_for_memory_.empty()) {
    wake_for_memory();
  }
  for (bool more = true; more;) {
    more = false;
    while (const auto refused = dispatcher_.next_refused(now())) {
      refuse(*std::bit_cast<Dispatched*>(refused->cookie), refused->why);
    }
    while (const auto assignment = dispatcher_.next(now())) {
      std::bit_cast<Dispatched*>(assignment->cookie)
          ->go_to(*replicas_[assignment->replica.value()]);
      more = true;  // a replica that could not be reached may leave others without hope
    }
    while (const auto hedge = dispatcher_.next_hedge(now())) {
      std::bit_cast<Dispatched*>(hedge->cookie)
          ->hedge_to(*replicas_[hedge->replica.value()], hedge->ticket);
      more = true;
    }
    more |= flush_sessions();  // a connection that breaks gives its calls back
  }
  while (const auto replica = dispatcher_.next_probe(now())) {
    replicas_[replica->value()]->probe();
  }
  pumping_ = false;
  arm_timer();
}

void Reactor::wake_for_memory() {
  memory_released_ = false;
  // Each at most once: who is still without memory goes to the end again.
  for (std::size_t count = waiting_for_memory_.size(); count > 0; --count) {
    Client* const client = waiting_for_memory_.front();
    waiting_for_memory_.pop_front();
    client->memory_freed();
  }
}

void Reactor::arm_timer() {
  const std::optional<Instant> due = dispatcher_.next_deadline();
  if (!due || (timer_.armed() && timer_.when <= *due)) {
    return;  // a timer that comes early looks again
  }
  loop_.cancel(timer_);
  timer_ = loop_.call_at(*due, [this] {
    timer_ = {};
    pump();
  });
}

void Reactor::sweep() {
  const Instant now = loop_.now();
  std::vector<Client*> clients;
  clients.reserve(clients_.size());
  for (const auto& [key, client] : clients_) {
    clients.push_back(client.get());
  }
  for (Client* const client : clients) {
    client->check_time(now);
  }
  sweep_replicas(now);
  while (const auto late = dispatcher_.next_late(now)) {
    refuse(*std::bit_cast<Dispatched*>(late->cookie), late->why);
  }
  pump();
  remove_drained();
  const auto is_old = [now](const auto& entry) { return entry.first < now; };
  std::erase_if(retired_, is_old);
  std::erase_if(buried_, is_old);
  loop_.call_after(kSweepEvery, [this] { sweep(); });
}

void Reactor::sweep_replicas(Instant now) {
  const bool ask = ++sweeps_ % kSweepsPerStatistics == 0;
  const bool note = sweeps_ % kSweepsPerBusyShare == 0;
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    if (replica) {
      replica->check_time(now);
      if (note) {
        replica->note_busy(now, dispatcher_.view(replica->index(), now).busy);
      }
    }
  }
  if (note) {
    end_idle_sequences();
  }
  access_log_.flush();
  if (ask) {
    ask_replicas();
  }
}

// Statistics; and how far away the replicas are, all together, for the bound of the dispatcher.
// What is nearer than it assumes does not change it: then others' wake-ups are most of what was
// measured.
void Reactor::ask_replicas() {
  Duration sum{};
  std::int64_t known = 0;
  for (Replica* const replica : replicas_up()) {
    sum += replica->round_trip();
    known += replica->round_trip() > Duration::zero() ? 1 : 0;
    replica->measure_round_trip();
    replica->ask_statistics();
  }
  if (known > 0) {
    dispatcher_.set_round_trip(std::max(Dispatcher::kRoundTrip, sum / known));
  }
}

void Reactor::retire(Client& client) {
  std::erase(waiting_for_memory_, &client);
  const auto found = clients_.find(&client);
  if (found != clients_.end()) {
    retired_.emplace_back(now(), std::move(found->second));
    clients_.erase(found);
  }
}

void Reactor::bury(std::unique_ptr<UpstreamConnection> connection) {
  connection->shut();
  buried_.emplace_back(now(), std::move(connection));
}

void Reactor::count_reply(unsigned status) {
  stats_.replies_2xx += status / 100 == 2 ? 1 : 0;
  stats_.replies_4xx += status / 100 == 4 ? 1 : 0;
  stats_.replies_5xx += status / 100 == 5 ? 1 : 0;
}

}  // namespace septet::balance
