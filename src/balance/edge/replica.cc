#include "balance/edge/replica.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "balance/edge/reactor.h"
#include "balance/replica_capacity.h"

namespace septet::balance {

namespace {

// How many times its deadline a request that timed out may keep its slot.
constexpr int kOutlasts = 10;
bool is_error(const UpstreamConnection& connection) {
  return !connection.streaming() && connection.whole_reply().head.status >= 500;
}

constexpr std::string_view kHealth = "/v2/health/ready";

}  // namespace

const char* failure_text(Failure failure) {
  switch (failure) {
    case Failure::kNotConnected:
      return "cannot be reached";
    case Failure::kStaleConnection:
    case Failure::kConnectionLost:
      return "closed the connection before its reply was complete";
    case Failure::kBadReply:
      return "broke off its reply or sent something that is none";
    case Failure::kTimedOut:
      return "did not reply in time";
  }
  return "failed";
}

unsigned failure_status(Failure failure) {
  switch (failure) {
    case Failure::kNotConnected:
    case Failure::kStaleConnection:
    case Failure::kConnectionLost:
      return 503;
    case Failure::kBadReply:
      return 502;
    case Failure::kTimedOut:
      return 504;
  }
  return 502;
}

void Exchange::go_to(Replica& replica) { replica.send(*this); }

void Exchange::on_refused(unsigned status, std::string_view message) {
  sink->on_no_reply(status, message);
}

// The copy takes the place of what was sent first, which is its rival from here on.
void Exchange::hedge_to(Replica& replica, Ticket second) {
  rival = {connection, ticket};
  connection = nullptr;
  ticket = copy = second;
  hedge = Hedge::kSent;
  replica.send(*this);
}

void Exchange::prefer(const UpstreamConnection& winner) {
  if (rival.connection == &winner) {
    std::swap(connection, rival.connection);
    std::swap(ticket, rival.ticket);
  }
}

void Exchange::fall_back() {
  connection = rival.connection;
  ticket = rival.ticket;
  rival = {};
}

Replica::Replica(Reactor& reactor, Upstream upstream, ReplicaIndex index)
    : reactor_(reactor),
      upstream_(std::move(upstream)),
      index_(index),
      side_(reactor, *this),
      foreign_(reactor, *this, side_),
      busy_noted_(reactor.now()) {
  if (upstream_.grpc) {
    grpc_.emplace(reactor, *this, *upstream_.grpc);
  }
}

Replica::~Replica() = default;

bool Replica::serves(std::string_view model) const {
  return upstream_.models.empty() || std::find(upstream_.models.begin(), upstream_.models.end(),
                                               model) != upstream_.models.end();
}

bool Replica::quiet() const {
  return connections_.size() == idle_.size() && (!grpc_ || grpc_->quiet());
}

UpstreamConnection* Replica::connect(Exchange& exchange) {
  if (!idle_.empty()) {
    UpstreamConnection* const connection = idle_.back();
    idle_.pop_back();
    return connection;
  }
  Result<os::UniqueFd> fd = os::start_connect(upstream_.endpoint);
  auto connection = std::make_unique<UpstreamConnection>(reactor_.upstream_context(), *this);
  if (!fd.ok() || !connection->adopt(std::move(*fd), upstream_.endpoint.is_unix()).ok()) {
    no_reply(exchange, Failure::kNotConnected);
    return nullptr;
  }
  connections_.push_back(std::move(connection));
  return connections_.back().get();
}

void Replica::send(Exchange& exchange) {
  if (UpstreamConnection* const connection = connect(exchange)) {
    const UpstreamConnection::Bodies bodies = bodies_for(exchange);
    slot_requests_ += bodies != UpstreamConnection::Bodies::kSent ? 1 : 0;
    connection->start(exchange, bodies);
  }
}

UpstreamConnection::Bodies Replica::bodies_for(const Exchange& exchange) const {
  if (exchange.slot == nullptr) {
    return UpstreamConnection::Bodies::kSent;
  }
  const bool named = reactor_.bodies().named_region() != nullptr;
  if (named ? !foreign_.registered() : !takes_slots_) {
    return UpstreamConnection::Bodies::kSent;
  }
  return named ? UpstreamConnection::Bodies::kInNamedRegion : UpstreamConnection::Bodies::kInSlots;
}

void Replica::send(GrpcCall& call) {
  if (grpc_) {
    grpc_->start(call);
  } else {
    call.on_lost(*this, Failure::kStaleConnection);  // it has no part in this
  }
}

// Tells the dispatcher, and the sink unless the request is sent again.
void Replica::no_reply(Exchange& exchange, Failure failure) {
  exchange.connection = nullptr;
  if (failure == Failure::kStaleConnection || failure == Failure::kConnectionLost) {
    // The other idle ones are as old; a new connection tells how things are.
    while (!idle_.empty()) {
      bury(*idle_.back());
    }
    if (!exchange.ticket && !exchange.tried_again) {
      exchange.tried_again = true;
      send(exchange);
      return;
    }
  }
  if (exchange.ticket && reactor_.dispatcher().failed(reactor_.now(), *exchange.ticket, failure)) {
    return;  // queued again
  }
  if (exchange.rival.ticket) {
    exchange.fall_back();
    return;
  }
  exchange.ticket.reset();
  exchange.sink->on_no_reply(failure_status(failure),
                             fmt::format("replica '{}' {}{}", name(), failure_text(failure),
                                         reactor_.lose_sequence(exchange, failure)));
}

void Replica::reply_complete(UpstreamConnection& connection) {
  Exchange* exchange = connection.exchange();
  if (exchange != nullptr && exchange->rival.ticket && is_error(connection)) {
    // An error ends nothing that may still be answered.
    static_cast<void>(reactor_.dispatcher().failed(reactor_.now(), *connection.ticket(),
                                                   Failure::kStaleConnection));
    exchange->prefer(connection);
    exchange->fall_back();
    exchange = nullptr;
  } else if (connection.ticket()) {
    reactor_.dispatcher().completed(reactor_.now(), *connection.ticket());
  }
  if (connection.reads_named_region()) {
    foreign_.worked();
  }
  if (exchange != nullptr) {
    exchange->prefer(connection);
    reactor_.drop_rival(*exchange);
    exchange->connection = nullptr;
    exchange->ticket.reset();
    if (connection.streaming()) {
      exchange->sink->on_reply_end();
    } else {
      exchange->sink->on_whole_reply(connection.whole_reply());
    }
  }
  if (connection.release()) {
    idle_.push_back(&connection);
  } else {
    bury(connection);
  }
  reactor_.pump();
}

void Replica::reply_failed(UpstreamConnection& connection, Failure failure) {
  Exchange* const exchange = connection.exchange();
  if (exchange != nullptr) {
    exchange->prefer(connection);
    no_reply(*exchange, failure);
  } else if (connection.ticket()) {
    // Nobody waits for it, so it is not sent again.
    static_cast<void>(reactor_.dispatcher().failed(reactor_.now(), *connection.ticket(), failure));
  }
  if (failure != Failure::kTimedOut ||
      !connection.outlast(reactor_.now() + kOutlasts * reactor_.options().request_timeout)) {
    bury(connection);
  }
  reactor_.pump();
}

void Replica::reply_streams(UpstreamConnection& connection) {
  Exchange& exchange = *connection.exchange();
  exchange.prefer(connection);
  if (exchange.rival.ticket) {
    reactor_.dispatcher().prefer(reactor_.now(), *exchange.ticket);
    reactor_.drop_rival(exchange);
  }
}

// Not one of ours any more, or it has forgotten the region: what it gets from now on is whole, or
// is until it knows the region again.
void Replica::slot_ignored(UpstreamConnection& connection) {
  if (connection.reads_named_region()) {
    foreign_.lost();
    return;
  }
  takes_slots_ = false;
  reactor_.slots_changed();
}

void Replica::idle_connection_lost(UpstreamConnection& connection) { bury(connection); }

void Replica::bury(UpstreamConnection& connection) {
  std::erase(idle_, &connection);
  const auto found =
      std::find_if(connections_.begin(), connections_.end(),
                   [&connection](const auto& own) { return own.get() == &connection; });
  reactor_.bury(std::move(*found));
  connections_.erase(found);
}

void Replica::close_unwanted() {
  for (std::size_t i = connections_.size(); i-- > 0;) {
    UpstreamConnection& connection = *connections_[i];
    if (connection.busy() && connection.unwanted()) {
      if (connection.ticket()) {
        static_cast<void>(reactor_.dispatcher().failed(reactor_.now(), *connection.ticket(),
                                                       Failure::kStaleConnection));
      }
      bury(connection);
    }
  }
}

void Replica::check_time(Instant now) {
  for (std::size_t i = connections_.size(); i-- > 0;) {
    // A failure takes its connection away, and may put others to work.
    if (i < connections_.size() && connections_[i]->busy() && connections_[i]->deadline() <= now) {
      reply_failed(*connections_[i], Failure::kTimedOut);
    }
  }
  if (grpc_) {
    grpc_->check_time(now);
  }
}

void Replica::probe() {
  side_.ask(kHealth, [this](unsigned status, std::string_view /*body*/) {
    if (status != 0) {
      note_round_trip();
    }
    // 404: a server without the v2 health path; it answers, so it lives.
    probe_ended(status / 100 == 2 || status == 404);
  });
}

void Replica::measure_round_trip() {
  if (!side_.busy()) {
    side_.ask(kHealth, [this](unsigned status, std::string_view /*body*/) {
      if (status != 0) {
        note_round_trip();
      }
    });
  }
}

// The shortest of late: what is longer has waited for something, here or there.
void Replica::note_round_trip() {
  const Duration longest = round_trip_ + round_trip_ / 8;
  round_trip_ = round_trip_ == Duration::zero() ? side_.took() : std::min(side_.took(), longest);
}

void Replica::probe_ended(bool ready) {
  if (!ready) {
    reactor_.dispatcher().probe_failed(reactor_.now(), index_);
    return;
  }
  takes_slots_ = side_.grants_slots();
  takes_slot_calls_ = side_.grants_slot_calls();
  if (takes_slots_) {
    foreign_.not_needed();
  } else {
    foreign_.replica_is_up();
  }
  reactor_.slots_changed();
  reactor_.dispatcher().probe_succeeded(index_);
  reactor_.replica_is_up(*this);
}

void Replica::learn_capacity(const std::string& model, ModelIndex index) {
  if (!serves(model)) {
    return;
  }
  side_.ask("/v2/models/" + model + "/config", [this, index](unsigned status,
                                                             std::string_view body) {
    const std::optional<ReplicaCapacity> capacity =
        status == 200 ? parse_capacity(body) : std::nullopt;
    if (capacity) {
      reactor_.dispatcher().set_capacity(index_, index, capacity->instances, capacity->batch_cap);
    }
  });
}

void Replica::ask_statistics() {
  if (!side_.busy()) {
    side_.ask("/v2/models/stats", [this](unsigned status, std::string_view body) {
      if (status == 200) {
        reactor_.statistics().record(statistics_key(), body);
      }
    });
  }
}

void Replica::note_busy(Instant now, Duration busy) {
  if (now > busy_noted_) {
    busy_share_ = to_seconds(busy - busy_then_) / to_seconds(now - busy_noted_);
  }
  busy_noted_ = now;
  busy_then_ = busy;
}

bool Replica::said_last_words() {
  if (side_.busy()) {
    return false;
  }
  if (!last_words_) {
    last_words_ = true;
    ask_statistics();
  }
  return !side_.busy();
}

std::string Replica::statistics_key() const { return fmt::format("{}#{}", name(), index_.value()); }

}  // namespace septet::balance
