// HttpRequest: an ordinary request of a client, from its head to the end of its reply, whatever
// version of HTTP brought it: what it is about, memory for its body, who answers it, what is
// counted.
//
//   head() -> head_read() -> refusal()? -> (memory for the body) -> submit() -> reply -> clear()
//
// How bytes come from the client and go back is its Framing's business, which owns it; used by the
// reactor's thread, for one request after another.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "balance/edge/exchange.h"
#include "balance/edge/fan_out.h"
#include "balance/edge/memory.h"
#include "balance/edge/request_wishes.h"
#include "balance/forwarded_head.h"
#include "balance/route.h"

namespace septet::balance {

class Reactor;

class HttpRequest final : public ReplySink, public FanOut::Owner {
 public:
  // Says the reply to the client: whole, or head, data..., end, or head, data..., cut. Any of these
  // may clear() the request and begin the next.
  class Framing {
   public:
    virtual ~Framing() = default;
    // A reply of the proxy itself, in place of a replica's.
    virtual void write_own(const OwnReply& reply) = 0;
    virtual void write_whole(const WholeReply& reply) = 0;
    virtual void write_head(const inference::HttpHead& head) = 0;
    virtual Flow write_data(std::string_view data, std::string_view wire) = 0;
    virtual void write_end() = 0;
    // The rest of what has begun will never come, and the client has to see that.
    virtual void write_cut() = 0;
  };
  // Why a request is not served.
  struct Refusal {
    unsigned status = 400;
    std::string message;
  };

  HttpRequest(Reactor& reactor, Framing& framing);
  ~HttpRequest() override { abandon(); }
  HttpRequest(const HttpRequest&) = delete;
  HttpRequest& operator=(const HttpRequest&) = delete;

  // The views in it live until the request is cleared.
  inference::HttpHead& head() { return head_; }
  const inference::HttpHead& head() const { return head_; }
  // head() is another than that of the request before.
  void head_read();
  std::optional<Refusal> refusal() const;

  // Memory for a body of so many bytes; in a slot, where most of it is tensors: then they are
  // aligned, and a replica that takes slots reads them there.
  enum class Memory { kTaken, kLater, kNever };
  Memory take_memory(std::uint64_t bytes);
  // Memory for so many more, of a body whose length nobody knows.
  std::optional<Refusal> grow(std::size_t bytes);
  bool has_memory() const { return memory_.valid(); }
  // Where the next bytes of the body belong; then added() says that they came.
  char* body_end() { return memory_.data() + body_at_ + body_bytes_; }
  void added(std::size_t bytes) { body_bytes_ += bytes; }
  void append(std::string_view bytes);
  std::size_t body_bytes() const { return body_bytes_; }

  // Hands it over to whoever answers it. The body lies in the memory taken, or where the caller
  // keeps it until the reply is complete.
  void submit() { submit({memory_.valid() ? memory_.data() + body_at_ : nullptr, body_bytes_}); }
  void submit(std::string_view body);
  // Answers one that was not submitted.
  void refuse(unsigned status, std::string_view message);
  // The framing takes more of a streamed reply.
  void resume();
  // The reply is out: gives memory back.
  void clear();
  // The client is gone.
  void abandon();

  void on_merged(const MergedReply& reply) override;
  void on_whole_reply(const WholeReply& reply) override;
  void on_reply_head(const inference::HttpHead& head) override;
  Flow on_reply_data(std::string_view data, std::string_view wire) override;
  void on_reply_end() override;
  void on_no_reply(unsigned status, std::string_view message) override;

 private:
  bool wants_slot(std::uint64_t json_bytes, std::uint64_t bytes) const;
  bool answer_here();
  bool may_be_hedged() const;
  std::string_view body_json() const;
  void write_request();
  void answer(OwnReply reply);
  void answer_error(unsigned status, std::string_view message);
  void note_reply(unsigned status);

  Reactor& reactor_;
  Framing& framing_;
  inference::HttpHead head_;
  Route route_;                   // of head_
  bool is_encoded_ = false;       // its body cannot be looked into
  std::uint64_t json_bytes_ = 0;  // of the body, at most; with written_
  bool written_ = false;          // exchange_.head and wishes_ are head_'s
  RequestWishes wishes_;
  Body memory_;
  std::size_t body_at_ = 0;  // where the body begins in it
  std::size_t body_bytes_ = 0;
  Instant submitted_{};
  bool replying_ = false;  // a streamed reply has begun
  Exchange exchange_;
  std::unique_ptr<FanOut> fan_out_;
};

}  // namespace septet::balance
