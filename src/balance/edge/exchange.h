// Exchange: one request on its way to a replica, and where its reply goes.
//
// Owned by its sink (a client's connection, a fan-out, a probe), which outlives it or abandons it
// through the Reactor. Head and body stay untouched until the reply is complete, so the request can
// be sent again to another replica.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "balance/dispatcher.h"
#include "balance/edge/memory.h"
#include "base/time.h"
#include "inference/http1.h"

namespace septet::balance {

class Replica;
class UpstreamConnection;

// What the dispatcher has in hand: one request, whatever protocol it came by.
class Dispatched {
 public:
  virtual ~Dispatched() = default;
  // The dispatcher has chosen.
  virtual void go_to(Replica& replica) = 0;
  // It will reach no replica; the status is HTTP's. The ticket has ended.
  virtual void on_refused(unsigned status, std::string_view message) = 0;
  // The dispatcher has chosen a replica for a second copy, with a ticket of its own. Only those
  // that may be hedged are asked.
  virtual void hedge_to(Replica& replica, Ticket copy) = 0;

  // How the one that was sent twice ended: kWon is the copy.
  enum class Hedge { kNone, kSent, kWon, kLost };
  Hedge hedge = Hedge::kNone;
  // "won", "lost"; empty without one.
  std::string_view hedge_text() const {
    return hedge == Hedge::kWon ? "won" : hedge == Hedge::kLost ? "lost" : "";
  }
  bool may_be_hedged = false;  // it changes nothing at the replica, and its reply lies in no memory
  std::string sequence;        // its key in the SequenceTable; empty = it is of none
  Instant deadline{};
  std::optional<Ticket> ticket;  // while the dispatcher has it
};

// A reply that is here to its last byte.
struct WholeReply {
  const inference::HttpHead& head;
  std::string_view body;
  // The head as it goes to a client of HTTP/1.1 whose connection stays open.
  std::string_view plain_head;
};

// Receives one reply: whole; or head, data..., end; or none.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  // The views live as long as the call.
  virtual void on_whole_reply(const WholeReply& reply) = 0;
  virtual void on_reply_head(const inference::HttpHead& head) = 0;
  enum class Flow { kGoOn, kPause };
  // kPause: nothing more until UpstreamConnection::resume(). data is the decoded body, wire is the
  // same with its chunk framing, if it has one.
  virtual Flow on_reply_data(std::string_view data, std::string_view wire) = 0;
  virtual void on_reply_end() = 0;
  // No reply, or (after on_reply_head) no more of it. Status and message are for the client.
  virtual void on_no_reply(unsigned status, std::string_view message) = 0;
};

struct Exchange final : Dispatched {
  explicit Exchange(ReplySink& reply_sink) : sink(&reply_sink) {}
  void go_to(Replica& replica) override;
  void on_refused(unsigned status, std::string_view message) override;
  void hedge_to(Replica& replica, Ticket copy) override;
  // Makes the connection, of the two, the one that counts.
  void prefer(const UpstreamConnection& winner);
  // Of two copies the one that counts is gone: the other one counts.
  void fall_back();

  ReplySink* sink;
  std::string head;       // as sent to the replica; memory kept
  std::string_view body;  // owned by the sink
  // Where the body lies in a slot: its memory, which the sink owns too, and all that a replica is
  // sent which reads it there (slot_request.h).
  const Body* slot = nullptr;
  std::string slot_head;
  std::string slot_json;  // memory kept
  bool is_head_request = false;
  bool tried_again = false;  // of one without a ticket: sent once more over a new connection
  UpstreamConnection* connection = nullptr;  // while a replica has it
  // The other copy, while both may be answered first.
  struct Rival {
    UpstreamConnection* connection = nullptr;
    std::optional<Ticket> ticket;
  };
  Rival rival;
  Ticket copy;  // of the two tickets the second
};

}  // namespace septet::balance
