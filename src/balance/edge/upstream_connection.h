// UpstreamConnection: one connection to a replica; sends a request, takes its reply apart.
//
//   idle -- start() --> connecting -> sending -> head -> body (whole or streamed) --> idle | closed
//
// Owned by its UpstreamPool, used by the reactor's thread. It reports to its owner exactly once per
// start(): reply_complete() or reply_failed(); after both the owner decides what becomes of it.
#pragma once

#include <sys/uio.h>

#include <optional>
#include <span>
#include <string_view>

#include "balance/edge/exchange.h"
#include "balance/edge/memory.h"
#include "balance/known_head.h"
#include "os/event_loop.h"
#include "os/unique_fd.h"

namespace septet::balance {

class UpstreamConnection final : public os::EventLoop::Watcher {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The reply is complete and still in the connection's memory; the sink has not been told when
    // whole is set. Call release() afterwards.
    virtual void reply_complete(UpstreamConnection& connection) = 0;
    virtual void reply_failed(UpstreamConnection& connection, Failure failure) = 0;
    // The reply begins to go to the sink, so no other copy of the request can be answered.
    virtual void reply_streams(UpstreamConnection& connection) = 0;
    // The replica does not know what a slot is, or this region; reply_failed() follows.
    virtual void slot_ignored(UpstreamConnection& connection) = 0;
    // An idle connection was closed by the replica.
    virtual void idle_connection_lost(UpstreamConnection& connection) = 0;
  };
  struct Limits {
    std::size_t max_head_bytes = 0;
    std::size_t kept_reply_bytes = 0;
  };
  struct Context {
    os::EventLoop& loop;
    BufferPool& buffers;
    BodyPool& bodies;
    Limits limits;
  };

  UpstreamConnection(const Context& context, Owner& owner);
  ~UpstreamConnection() override;
  UpstreamConnection(const UpstreamConnection&) = delete;
  UpstreamConnection& operator=(const UpstreamConnection&) = delete;

  // Takes a socket whose connect was started; a Unix socket is connected at once.
  Result<Ok> adopt(os::UniqueFd fd, bool connected);
  enum class Bodies { kSent, kInSlots, kInNamedRegion };
  // Sends the request, or where in a slot its body lies. A failure is reported through the owner,
  // maybe before this returns.
  void start(Exchange& exchange, Bodies bodies);
  // The sink is gone. True: the reply will still be read and thrown away, then reported. False: the
  // connection is of no more use and reports nothing; the owner closes it once out of its calls.
  bool abandon();
  // After a time-out: whether the replica may still be reading a slot. Then the connection goes on,
  // keeps the slot and throws the reply away; at that deadline it times out once more, for good.
  bool outlast(Instant deadline);
  // The sink that paused takes more.
  void resume();
  // Back to idle after reply_complete(); false if the connection cannot be used again.
  bool release();

  Exchange* exchange() const { return exchange_; }
  std::optional<Ticket> ticket() const { return ticket_; }
  Instant deadline() const { return deadline_; }
  bool busy() const { return state_ != State::kIdle; }
  bool reads_named_region() const { return bodies_ == Bodies::kInNamedRegion; }
  // Its sink is gone and its reply is not worth waiting for.
  bool unwanted() const { return unwanted_; }
  // Closes the socket and gives its memory back; nothing is reported any more.
  void shut();
  bool streaming() const { return streaming_; }
  // Valid in reply_complete() of a reply that was not streamed.
  WholeReply whole_reply() const { return {head_, body_view_, plain_head_}; }

  void on_ready(std::uint32_t events) override;

 private:
  enum class State { kIdle, kConnecting, kSending, kHead, kWholeBody, kStreamed };
  enum class Step { kAgain, kWait, kDone };  // kDone: reported, touch nothing

  void send_rest();
  ssize_t send_parts(std::span<const iovec> parts);
  Step read_some();
  Step parse_head();
  void keep_head(std::size_t bytes);
  bool accepts_slot();  // false: reported
  bool denies_region() const;
  Step ignored_slot();
  Step begin_body();
  Step take_whole(std::string_view bytes);
  Step take_streamed(std::string_view bytes);
  Step finish();
  Step fail(Failure failure);
  void drive();
  void want_writable(bool wanted);
  std::string_view buffered() const { return {buffer_.get() + begin_, end_ - begin_}; }

  Context context_;
  Owner& owner_;
  os::UniqueFd fd_;
  State state_ = State::kIdle;
  bool connected_ = false;
  bool readable_ = false;
  bool peer_closed_ = false;
  bool wants_writable_ = false;
  bool paused_ = false;
  bool streaming_ = false;
  bool at_end_ = false;  // the replica has closed its side
  Exchange* exchange_ = nullptr;
  Body slot_;                      // what the replica reads, so that nobody else gets it meanwhile
  Bodies bodies_ = Bodies::kSent;  // of this request
  bool knows_region_ = false;
  std::optional<Ticket> ticket_;
  Instant deadline_{};
  std::size_t sent_ = 0;  // of head + body
  bool sent_all_ = false;
  bool send_broke_ = false;  // the replica closed; a reply may lie in the socket all the same
  bool to_head_ = false;
  bool unwanted_ = false;
  BufferPool::Buffer buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  inference::HttpHeadParser parser_;
  inference::HttpHead head_;
  KnownHead known_;
  bool in_head_ = false;    // the parser has seen part of a head
  std::string plain_head_;  // of head_; memory kept
  std::optional<inference::ChunkedDecoder> chunks_;
  std::uint64_t body_left_ = 0;  // with a length
  Body whole_;
  std::size_t whole_bytes_ = 0;
  std::string_view body_view_;
};

}  // namespace septet::balance
