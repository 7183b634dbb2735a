#include "agent/edge/lease_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "agent/edge/error_json.h"
#include "base/text.h"
#include "base/units.h"
#include "os/clock.h"

namespace septet::agent {

using lend::Json;
using lend::LeaseId;
using lend::UserId;

namespace {

double seconds_until(Instant instant) { return std::max(0.0, to_seconds(instant - os::now())); }

UserId user_of(const ControlExchange& exchange) { return UserId(exchange.request().peer.uid); }

void respond_error(ControlExchange& exchange, const Error& error) {
  exchange.respond(http_status(error.kind), error_json(error).dump());
}

// The body as a JSON object; an empty body is an empty object.
Result<Json> body_of(const ControlExchange& exchange) {
  if (exchange.request().body.empty()) {
    return Json::object();
  }
  Result<Json> json = lend::parse_json(exchange.request().body);
  SEPTET_TRY(json);
  if (!json->is_object()) {
    return make_error(ErrorKind::kUsage, "the request body is not a JSON object");
  }
  return json;
}

}  // namespace

// One who asked for a lease and hears its news, as a stream of lines or as one answer.
class LeaseApi::Holder : public lend::LeaseListener {
 public:
  enum class Mode { kStream, kOneAnswer };

  Holder(LeaseApi& api, ControlExchange& exchange, Mode mode, bool is_attached)
      : api_(api), exchange_(&exchange), mode_(mode), is_attached_(is_attached) {
    exchange.on_close([this] { closed(); });
    if (mode_ == Mode::kStream) {
      exchange.open_stream();
    }
  }

  // News may come before the id is known; they carry it.
  void on_news(LeaseId lease, const lend::LeaseNews& news) override {
    id_ = lease;
    std::visit([this](const auto& each) { tell(each); }, news);
  }

  // A lease that existed before.
  void resume(const lend::Lease& lease) {
    id_ = lease.id;
    if (lease.state == lend::LeaseState::kQueued) {
      tell(lend::TellQueued{lease.id});
    } else {
      tell(lend::TellGranted{lease.id});
    }
  }

  void set_id(LeaseId id) { id_ = id; }
  // The asker went before the lease was known by its id.
  bool left_early() const { return exchange_ == nullptr && !was_answered_; }

 private:
  void tell(const lend::TellGranted& news) {
    is_granted_ = true;
    const auto found = api_.lender_.ledger().leases().find(news.id);
    if (found == api_.lender_.ledger().leases().end()) {
      return;
    }
    Json json = api_.granted_view(found->second);
    if (mode_ == Mode::kStream) {
      json["event"] = "granted";
      send(json);
      if (!is_attached_) {
        finish_stream();
      }
    } else {
      answer(201, json);
    }
  }
  void tell(const lend::TellQueued& news) {
    const auto& queue = api_.lender_.ledger().queue();
    const auto place = std::find(queue.begin(), queue.end(), news.id) - queue.begin();
    Json json = {{"id", news.id.value()},
                 {"position", place + 1},
                 {"waits_for_quota", api_.lender_.ledger().waits_for_quota(news.id)}};
    if (mode_ == Mode::kStream) {
      json["event"] = "queued";
      send(json);
    } else {
      is_granted_ = true;  // the request stands whether or not the asker stays
      answer(202, json);
    }
  }
  void tell(const lend::TellRefused& news) {
    is_granted_ = is_granted_ || mode_ == Mode::kOneAnswer;
    if (mode_ == Mode::kOneAnswer) {
      return answer(http_status(news.error.kind), error_json(news.error));
    }
    Json json = error_json(news.error);
    json["event"] = "refused";
    send(json);
    // The refusal of a renewal ends nothing.
    if (!is_granted_) {
      finish_stream();
    }
  }
  void tell(const lend::WarnHolder& news) {
    send({{"event", "warned"},
          {"id", news.id.value()},
          {"reason", to_string(news.reason)},
          {"seconds", seconds_until(news.deadline)}});
  }
  void tell(const lend::WithdrawWarning& news) {
    send({{"event", "warning_withdrawn"}, {"id", news.id.value()}});
  }
  void tell(const lend::AskToEnd& news) {
    send({{"event", "ending"},
          {"id", news.id.value()},
          {"reason", to_string(news.reason)},
          {"seconds", seconds_until(news.deadline)}});
  }
  void tell(const lend::TellEnded& news) {
    if (mode_ == Mode::kStream) {
      send({{"event", "ended"}, {"id", news.id.value()}, {"reason", to_string(news.reason)}});
      finish_stream();
    }
  }

  void send(const Json& json) {
    if (exchange_ != nullptr && mode_ == Mode::kStream) {
      exchange_->send_line(json.dump());
    }
  }
  void answer(unsigned status, const Json& json) {
    if (ControlExchange* exchange = std::exchange(exchange_, nullptr)) {
      was_answered_ = true;
      exchange->respond(status, json.dump());
      api_.drop(*this);
    }
  }
  void finish_stream() {
    if (ControlExchange* exchange = std::exchange(exchange_, nullptr)) {
      was_answered_ = true;
      exchange->end_stream();
      api_.drop(*this);
    }
  }

  // The asker is gone: what it holds by its connection ends, and nobody waits for what was not yet
  // granted.
  void closed() {
    exchange_ = nullptr;
    const LeaseId id = id_;
    const bool ends = is_attached_ || !is_granted_;
    LeaseApi& api = api_;
    api.drop(*this);
    if (ends && id != LeaseId{}) {
      api.lender_.holder_lost(id);
    }
  }

  LeaseApi& api_;
  ControlExchange* exchange_;
  Mode mode_;
  bool is_attached_;
  bool is_granted_ = false;
  bool was_answered_ = false;
  LeaseId id_;
};

LeaseApi::LeaseApi(lend::Lender& lender, std::string note)
    : lender_(lender), note_(std::move(note)) {}

LeaseApi::~LeaseApi() {
  for (const auto& [holder, owner] : holders_) {
    lender_.forget(*holder);
  }
}

// Not at once: the holder's own code may be running.
void LeaseApi::drop(Holder& holder) {
  lender_.forget_soon(holder, [this, address = &holder] { holders_.erase(address); });
}

void LeaseApi::acquire(ControlExchange& exchange) {
  const Result<Json> body = body_of(exchange);
  if (!body.ok()) {
    return respond_error(exchange, body.error());
  }
  Result<lend::LeaseRequest> request = lend::request_from_json(*body);
  if (!request.ok()) {
    return respond_error(exchange, request.error());
  }
  request->owner = owner_of(exchange.request().peer);
  const bool streams = body->contains("stream") && (*body)["stream"] == true;
  if (request->is_attached && !streams) {
    return respond_error(exchange,
                         make_error(ErrorKind::kUsage, "an attached lease needs \"stream\": true"));
  }
  auto holder = std::make_unique<Holder>(*this, exchange,
                                         streams ? Holder::Mode::kStream : Holder::Mode::kOneAnswer,
                                         request->is_attached);
  Holder* const listener = holder.get();
  holders_.emplace(listener, std::move(holder));
  const LeaseId id = lender_.request(*request, *listener);
  listener->set_id(id);
  if (listener->left_early()) {
    lender_.holder_lost(id);
  }
}

void LeaseApi::attach(ControlExchange& exchange, LeaseId id) {
  const auto found = lender_.ledger().leases().find(id);
  const bool is_attached =
      found != lender_.ledger().leases().end() && found->second.request.is_attached;
  // Permission first: a stranger's stream must never become a hold on the lease.
  if (const Result<Ok> allowed = lender_.check_owner(id, user_of(exchange)); !allowed.ok()) {
    return respond_error(exchange, allowed.error());
  }
  auto holder = std::make_unique<Holder>(*this, exchange, Holder::Mode::kStream, is_attached);
  Holder* const listener = holder.get();
  holders_.emplace(listener, std::move(holder));
  const Result<lend::Lease> lease = lender_.attach(id, user_of(exchange), *listener);
  CHECK(lease.ok());
  listener->resume(*lease);
}

void LeaseApi::renew(ControlExchange& exchange, LeaseId id) {
  const Result<Json> body = body_of(exchange);
  if (!body.ok()) {
    return respond_error(exchange, body.error());
  }
  const auto words = body->find("time");
  if (words == body->end() || !words->is_string()) {
    return respond_error(
        exchange, make_error(ErrorKind::kUsage, "a renewal states its time, such as \"2h\""));
  }
  const Result<Duration> time = parse_duration(words->get<std::string>());
  if (!time.ok()) {
    return respond_error(exchange, time.error());
  }
  lend::RenewalRequested renewal{id, user_of(exchange), *time, std::nullopt};
  if (const auto generation = body->find("generation");
      generation != body->end() && generation->is_number_unsigned()) {
    renewal.generation = generation->get<unsigned>();
  }
  const Result<lend::Lease> renewed = lender_.renew(renewal);
  if (!renewed.ok()) {
    return respond_error(exchange, renewed.error());
  }
  exchange.respond(200, Json{{"lease", lease_view(*renewed)}}.dump());
}

void LeaseApi::release(ControlExchange& exchange, LeaseId id) {
  const Result<Ok> released = lender_.release(id, user_of(exchange));
  if (!released.ok()) {
    return respond_error(exchange, released.error());
  }
  exchange.respond(200, Json{{"released", id.value()}}.dump());
}

void LeaseApi::show(ControlExchange& exchange, LeaseId id) {
  const auto found = lender_.ledger().leases().find(id);
  if (found == lender_.ledger().leases().end()) {
    return respond_error(
        exchange,
        make_error(ErrorKind::kNotFound, fmt::format("there is no running lease {}", id.value()),
                   "see septet lease list and septet lease history"));
  }
  exchange.respond(200, granted_view(found->second).dump());
}

void LeaseApi::add_process(ControlExchange& exchange, LeaseId id) {
  const Result<Json> body = body_of(exchange);
  if (!body.ok()) {
    return respond_error(exchange, body.error());
  }
  const auto pid = body->find("pid");
  if (pid == body->end() || !pid->is_number_integer()) {
    return respond_error(exchange, make_error(ErrorKind::kUsage, "field 'pid' is a number"));
  }
  const Result<Ok> added = lender_.add_process(id, user_of(exchange), pid->get<pid_t>());
  if (!added.ok()) {
    return respond_error(exchange, added.error());
  }
  exchange.respond(200, "{}");
}

void LeaseApi::report_activity(ControlExchange& exchange, LeaseId id) {
  const Result<Json> body = body_of(exchange);
  if (!body.ok()) {
    return respond_error(exchange, body.error());
  }
  const auto state = body->find("state");
  const bool is_busy = state != body->end() && *state == "busy";
  if (!is_busy && (state == body->end() || *state != "idle")) {
    return respond_error(exchange, make_error(ErrorKind::kUsage, "field 'state' is busy or idle"));
  }
  const Result<Ok> reported = lender_.report_activity(
      id, user_of(exchange), is_busy ? lend::Activity::kBusy : lend::Activity::kIdle);
  if (!reported.ok()) {
    return respond_error(exchange, reported.error());
  }
  exchange.respond(200, "{}");
}

}  // namespace septet::agent
