#include "balance/edge/fan_out.h"

#include "balance/edge/reactor.h"
#include "balance/forwarded_head.h"
#include "balance/shared_request.h"

namespace septet::balance {

namespace {

constexpr std::string_view kStatisticsHead =
    "GET /v2/models/stats HTTP/1.1\r\nHost: localhost\r\nUser-Agent: septet\r\n\r\n";
constexpr std::size_t kMaxReplyBytes = 64ULL << 20U;

}  // namespace

FanOut::FanOut(Reactor& reactor, Owner& owner, const Route& route, const Question& question)
    : reactor_(reactor), owner_(owner), route_(route), question_(question) {}

FanOut::~FanOut() {
  for (const std::unique_ptr<Branch>& branch : branches_) {
    reactor_.abandon(branch->exchange);
  }
}

void FanOut::start() {
  const std::vector<Replica*> replicas = reactor_.replicas_up();
  // One more than there are, so that no branch that ends at once ends the whole.
  missing_ = replicas.size() + 1;
  for (Replica* const replica : replicas) {
    branches_.push_back(std::make_unique<Branch>(*this, replica->name()));
    Exchange& exchange = branches_.back()->exchange;
    // Always for all models, so that what is remembered of a replica is of one moment.
    exchange.head = route_.kind == RouteKind::kStatistics ? std::string(kStatisticsHead)
                                                          : std::string(question_.head);
    exchange.body = question_.body;
    exchange.is_head_request = question_.is_head_request;
    exchange.deadline = question_.deadline;
    branches_.back()->reply.replica =
        route_.kind == RouteKind::kStatistics ? replica->statistics_key() : replica->name();
    replica->send(exchange);
  }
  branch_done();
}

void FanOut::branch_done() {
  if (--missing_ == 0) {
    finish();
  }
}

// The last thing done here: the owner may destroy this.
void FanOut::finish() {
  std::vector<ReplicaReply> replies;
  for (const std::unique_ptr<Branch>& branch : branches_) {
    replies.push_back(std::move(branch->reply));
  }
  MergedReply merged = route_.kind == RouteKind::kStatistics ? statistics(replies)
                                                             : merge_replies(route_.kind, replies);
  if (route_.kind == RouteKind::kAnyReplica &&
      merged.body.find(kRegionPrefix) != std::string::npos) {
    merged.body = without_own_regions(merged.body);
  }
  if (route_.kind == RouteKind::kMetrics) {
    merged.body = reactor_.with_own_metrics(merged.body);
  }
  owner_.on_merged(merged);
}

// From what is known of all replicas, those included that have gone.
MergedReply FanOut::statistics(const std::vector<ReplicaReply>& replies) {
  for (const ReplicaReply& reply : replies) {
    if (reply.status == 200) {
      reactor_.statistics().record(reply.replica, reply.body);
    }
  }
  std::optional<std::string> document =
      reactor_.statistics().document(route_.model, route_.version);
  if (document) {
    return {200, "application/json", *std::move(document)};
  }
  const MergedReply merged = merge_replies(RouteKind::kStatistics, replies);
  if (merged.status != 200) {
    return merged;
  }
  return {
      400, "application/json",
      error_body("Request for unknown model: '" + std::string(route_.model) + "' is not found")};
}

void FanOut::Branch::on_whole_reply(const WholeReply& whole) {
  on_reply_head(whole.head);
  on_reply_data(whole.body, whole.body);
  on_reply_end();
}

void FanOut::Branch::on_reply_head(const inference::HttpHead& head) {
  reply.status = head.status;
  reply.content_type = std::string(head.find("content-type").value_or("text/plain"));
}

ReplySink::Flow FanOut::Branch::on_reply_data(std::string_view data, std::string_view /*wire*/) {
  if (reply.body.size() + data.size() <= kMaxReplyBytes) {
    reply.body += data;
  } else {
    reply.status = 0;
  }
  return Flow::kGoOn;
}

void FanOut::Branch::on_reply_end() { fan_out.branch_done(); }

void FanOut::Branch::on_no_reply(unsigned /*status*/, std::string_view /*message*/) {
  reply.status = 0;
  fan_out.branch_done();
}

}  // namespace septet::balance
