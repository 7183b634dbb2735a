#include "balance/edge/http_request.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "balance/edge/reactor.h"
#include "balance/edge/slot_request.h"
#include "balance/request_nature.h"
#include "base/text.h"
#include "inference/v2_codec.h"

namespace septet::balance {

using inference::BodyFraming;

namespace {

constexpr std::string_view kText = "text/plain";

HttpRequest::Refusal too_large(const std::string& body, std::size_t limit) {
  return {400, body + " is larger than the limit of " + std::to_string(limit) + " bytes"};
}

}  // namespace

HttpRequest::HttpRequest(Reactor& reactor, Framing& framing)
    : reactor_(reactor), framing_(framing), exchange_(*this) {}

void HttpRequest::head_read() {
  route_ = find_route(head_.method, head_.target);
  written_ = false;
}

std::optional<HttpRequest::Refusal> HttpRequest::refusal() const {
  // What a replica behind us may not know, it may take for something else.
  constexpr std::array<std::string_view, 7> kMethods = {"POST",   "GET",     "HEAD", "PUT",
                                                        "DELETE", "OPTIONS", "PATCH"};
  if (std::find(kMethods.begin(), kMethods.end(), head_.method) == kMethods.end()) {
    return Refusal{405, "this method is not served here"};
  }
  if (!head_.target.starts_with('/')) {
    return Refusal{400, "the request target has to be a path"};
  }
  const std::size_t limit = reactor_.options().max_body_bytes;
  if (head_.framing == BodyFraming::kLength && head_.content_length > limit) {
    return too_large("request body of " + std::to_string(head_.content_length) + " bytes", limit);
  }
  return std::nullopt;
}

bool HttpRequest::wants_slot(std::uint64_t json_bytes, std::uint64_t bytes) const {
  return reactor_.slots_in_use() && route_.kind == RouteKind::kInfer && json_bytes <= bytes / 2 &&
         !head_.find("content-encoding");
}

HttpRequest::Memory HttpRequest::take_memory(std::uint64_t bytes) {
  body_at_ = 0;
  const std::uint64_t json_bytes =
      parse_uint(head_.find(inference::kJsonLengthHeader).value_or("")).value_or(bytes);
  if (wants_slot(json_bytes, bytes)) {
    const std::size_t lead = lead_for(json_bytes);
    memory_ = reactor_.bodies().take_slot(lead + bytes);
    if (memory_.valid()) {
      body_at_ = lead;
      return Memory::kTaken;
    }
  }
  memory_ = reactor_.bodies().take(bytes);
  return memory_.valid()                 ? Memory::kTaken
         : reactor_.bodies().fits(bytes) ? Memory::kLater
                                         : Memory::kNever;
}

std::optional<HttpRequest::Refusal> HttpRequest::grow(std::size_t bytes) {
  const std::size_t limit = reactor_.options().max_body_bytes;
  if (body_bytes_ + bytes > limit) {
    return too_large("request body", limit);
  }
  if (body_bytes_ + bytes <= memory_.capacity()) {
    return std::nullopt;
  }
  Body larger = reactor_.bodies().take(body_bytes_ + bytes);
  if (!larger.valid()) {
    return Refusal{503, "no memory for a request body of unknown length; try again"};
  }
  if (body_bytes_ > 0) {
    std::memcpy(larger.data(), memory_.data(), body_bytes_);
  }
  memory_ = std::move(larger);
  return std::nullopt;
}

void HttpRequest::append(std::string_view bytes) {
  if (!bytes.empty()) {
    std::memcpy(body_end(), bytes.data(), bytes.size());
    added(bytes.size());
  }
}

// Whether it is one that the proxy knows the answer to.
bool HttpRequest::answer_here() {
  switch (route_.kind) {
    case RouteKind::kLive:
      answer({.status = 200, .content_type = kText});
      return true;
    case RouteKind::kReady:
      answer({.status = reactor_.dispatcher().any_up() ? 200U : 400U, .content_type = kText});
      return true;
    case RouteKind::kStatus:
      answer({.body = reactor_.status_json()});
      return true;
    case RouteKind::kInfer:
    case RouteKind::kAnyReplica:
    case RouteKind::kStatistics:
    case RouteKind::kRepositoryIndex:
    case RouteKind::kEveryReplica:
    case RouteKind::kMetrics:
      return false;
  }
  return false;
}

void HttpRequest::submit(std::string_view body) {
  submitted_ = reactor_.now();
  replying_ = false;
  exchange_.body = body;
  reactor_.count_request();
  if (answer_here()) {
    return;
  }
  write_request();
  if (memory_.valid() && memory_.in_slot()) {
    put_slot(exchange_, head_, memory_, body_at_);
  }
  exchange_.is_head_request = head_.method == "HEAD";
  exchange_.deadline = reactor_.now() + reactor_.options().request_timeout;
  if (route_.kind == RouteKind::kInfer) {
    if (wishes_.has_deadline()) {
      exchange_.deadline = std::min(exchange_.deadline, reactor_.now() + wishes_.timeout);
    }
    Reactor::Submission about{Reactor::Protocol::kHttp, route_.model, exchange_.body.size(),
                              wishes_};
    if (!is_encoded_) {
      about.sequence = read_json_sequence(body_json());
    }
    exchange_.may_be_hedged = reactor_.hedges() && about.sequence.id.empty() && may_be_hedged();
    reactor_.submit(exchange_, about);
  } else {
    const FanOut::Question question{exchange_.head, exchange_.body, exchange_.is_head_request,
                                    exchange_.deadline};
    fan_out_ = std::make_unique<FanOut>(reactor_, *this, route_, question);
    fan_out_->start();
  }
}

// Whether it may be answered by two replicas at the same time.
bool HttpRequest::may_be_hedged() const {
  const std::string_view path = std::string_view(head_.target).substr(0, head_.target.find('?'));
  return head_.method == "POST" && path.ends_with("/infer") && !is_encoded_ &&
         !json_names_shared_memory(body_json());
}

// The part of the body that is JSON.
std::string_view HttpRequest::body_json() const { return exchange_.body.substr(0, json_bytes_); }

// The head for the replica, and what it says to the dispatcher. Those of the same head stay; only
// the length of a body that came without one is not in its head.
void HttpRequest::write_request() {
  if (written_ && head_.framing != BodyFraming::kChunked) {
    return;
  }
  written_ = true;
  exchange_.head.clear();
  const bool has_body = head_.framing != BodyFraming::kNone;
  append_request_head(
      exchange_.head, head_,
      has_body ? std::optional<std::uint64_t>(exchange_.body.size()) : std::nullopt);
  is_encoded_ = head_.find("content-encoding").has_value();
  const std::optional<std::string_view> json_bytes = head_.find(inference::kJsonLengthHeader);
  json_bytes_ = json_bytes ? parse_uint(*json_bytes).value_or(0) : std::string_view::npos;
  wishes_ = {};
  for (const inference::HttpField& field : head_.fields) {
    wishes_.read_field(field.name, field.value);
  }
}

void HttpRequest::on_merged(const MergedReply& reply) {
  answer({.status = reply.status, .content_type = reply.content_type, .body = reply.body});
}

void HttpRequest::answer(OwnReply reply) {
  reply.to_head = head_.method == "HEAD";
  note_reply(reply.status);
  framing_.write_own(reply);
}

void HttpRequest::answer_error(unsigned status, std::string_view message) {
  answer({.status = status, .body = error_body(message)});
}

void HttpRequest::refuse(unsigned status, std::string_view message) {
  submitted_ = reactor_.now();
  reactor_.count_request();
  answer_error(status, message);
}

void HttpRequest::on_whole_reply(const WholeReply& reply) {
  if (reply.head.status / 100 == 2) {
    reactor_.learn_model(Reactor::Protocol::kHttp, route_.model);
  }
  note_reply(reply.head.status);
  framing_.write_whole(reply);
}

void HttpRequest::on_reply_head(const inference::HttpHead& head) {
  replying_ = true;
  reactor_.forbid_repeat(exchange_);
  note_reply(head.status);
  framing_.write_head(head);
}

ReplySink::Flow HttpRequest::on_reply_data(std::string_view data, std::string_view wire) {
  return framing_.write_data(data, wire);
}

void HttpRequest::on_reply_end() { framing_.write_end(); }

void HttpRequest::on_no_reply(unsigned status, std::string_view message) {
  if (replying_) {
    framing_.write_cut();
  } else {
    answer_error(status, message);
  }
}

void HttpRequest::note_reply(unsigned status) {
  reactor_.count_reply(status);
  if (reactor_.access_log().wants_next()) {
    reactor_.access_log().add({.protocol = "http",
                               .method = head_.method,
                               .target = head_.target,
                               .status = status,
                               .took = reactor_.now() - submitted_,
                               .hedge = exchange_.hedge_text(),
                               .request_id = head_.find("x-request-id").value_or(""),
                               .traceparent = head_.find("traceparent").value_or("")});
  }
}

void HttpRequest::resume() {
  if (exchange_.connection != nullptr) {
    exchange_.connection->resume();
  }
}

void HttpRequest::clear() {
  fan_out_.reset();
  memory_.release();
  body_at_ = body_bytes_ = 0;
  exchange_.body = {};
  exchange_.slot = nullptr;
  reactor_.memory_released();
}

void HttpRequest::abandon() {
  reactor_.abandon(exchange_);
  clear();
}

}  // namespace septet::balance
