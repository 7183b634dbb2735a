#include "balance/edge/grpc_fan_out.h"

#include <algorithm>
#include <cstring>

#include "balance/edge/grpc_messages.h"
#include "balance/edge/grpc_upstream.h"
#include "balance/edge/reactor.h"

namespace septet::balance {

namespace {

constexpr std::size_t kMaxReplyBytes = 64ULL << 20U;

}  // namespace

std::string_view GrpcReply::status() const {
  const std::string_view at_the_end = trailers.find("grpc-status");
  return !at_the_end.empty() ? at_the_end : head.find("grpc-status");
}

// One replica's share; keeps its reply until all have come.
class GrpcFanOut::Branch final : public GrpcCall {
 public:
  Branch(GrpcFanOut& owner, const GrpcCall& call) : fan_out_(owner) {
    request_ = call.request();
    deadline = call.deadline;
  }
  ~Branch() override {
    if (upstream != nullptr) {
      upstream->cancel();
    }
  }
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;

  const GrpcReply& reply() const { return reply_; }

  void go_to(Replica& replica) override { replica.send(*this); }
  void on_refused(unsigned /*status*/, std::string_view /*message*/) override {}
  Http2Stream::Supply supply_request(char* to, std::size_t room) override {
    using Then = Http2Stream::Supply::Then;
    const std::string_view left = fan_out_.message_.substr(sent_);
    const std::size_t bytes = std::min(left.size(), room);
    std::memcpy(to, left.data(), bytes);
    sent_ += bytes;
    return {bytes, bytes == left.size() ? Then::kEnd : Then::kMore};
  }
  void on_reply_head(const FieldList& fields) override { reply_.head = fields; }
  void on_reply_data(std::string_view data) override {
    too_large_ |= reply_.data.size() + data.size() > kMaxReplyBytes;
    if (!too_large_) {
      reply_.data += data;
    }
    upstream->consume(data.size());
  }
  void on_reply_trailers(const FieldList& fields) override { reply_.trailers = fields; }
  void on_reply_end() override {
    reply_.whole = !too_large_;
    if (request_.find(":path").ends_with("/SystemSharedMemoryStatus") && reply_.whole) {
      reply_.data = without_own_regions_framed(reply_.data);
    }
    fan_out_.branch_done();
  }
  void on_lost(Replica& replica, Failure failure) override {
    const bool again = failure != Failure::kTimedOut && failure != Failure::kNotConnected;
    if (again && !tried_again_) {
      tried_again_ = true;
      sent_ = 0;
      reply_ = {};
      replica.send(*this);
      return;
    }
    fan_out_.branch_done();
  }

 private:
  GrpcFanOut& fan_out_;
  GrpcReply reply_;
  std::size_t sent_ = 0;
  bool tried_again_ = false;
  bool too_large_ = false;
};

GrpcFanOut::GrpcFanOut(Reactor& reactor, Owner& owner, Rule rule, const GrpcCall& call,
                       std::string_view message)
    : reactor_(reactor), owner_(owner), rule_(rule), call_(call), message_(message) {}

GrpcFanOut::~GrpcFanOut() = default;

void GrpcFanOut::start() {
  std::vector<Replica*> replicas = reactor_.replicas_up();
  std::erase_if(replicas, [](const Replica* replica) { return !replica->speaks_grpc(); });
  // One more than there are, so that no branch that ends at once ends the whole.
  missing_ = replicas.size() + 1;
  for (Replica* const replica : replicas) {
    branches_.push_back(std::make_unique<Branch>(*this, call_));
    replica->send(*branches_.back());
  }
  branch_done();
}

void GrpcFanOut::branch_done() {
  if (--missing_ == 0) {
    owner_.on_merged_call(choose());  // the last thing done here: the owner may destroy this
  }
}

const GrpcReply& GrpcFanOut::choose() const {
  static const GrpcReply kNone;
  const GrpcReply* success = nullptr;
  const GrpcReply* error = nullptr;
  for (const std::unique_ptr<Branch>& branch : branches_) {
    const GrpcReply& reply = branch->reply();
    if (!reply.whole) {
      continue;
    }
    const GrpcReply*& place = reply.status() == "0" ? success : error;
    place = place == nullptr ? &reply : place;
  }
  const bool error_counts = error != nullptr && (rule_ == Rule::kAll || success == nullptr);
  return error_counts ? *error : success != nullptr ? *success : kNone;
}

}  // namespace septet::balance
