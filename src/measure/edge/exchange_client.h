// ExchangeClient: one connection that carries one request and its answer at a time.
//
// What a load is made of, over HTTP/1.1 (http_client.h) or gRPC (grpc_client.h). Owned by whoever
// drives it; used by the loop's thread. It connects when something is to be sent and is not
// connected. The time stamps are what the load generator measures by: the end of an answer is the
// instant at which the loop saw its last bytes ready, so that the handling of other connections in
// the same round is not charged to the server.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "measure/level_result.h"
#include "os/endpoint.h"
#include "os/event_loop.h"

namespace septet::measure {

class ExchangeClient {
 public:
  // HTTP: head and body, sent back to back. gRPC: the method's path, then the framed message. The
  // bytes stay the caller's and must live until the exchange has ended.
  using Pieces = std::array<std::string_view, 3>;

  struct Answer {
    unsigned status = 0;    // of HTTP; gRPC's codes are translated to the nearest
    std::string_view body;  // with BodyUse::kKeep, and the first bytes of an error's
    std::optional<std::uint64_t> json_bytes;  // HTTP, with BodyUse::kKeep: the JSON's part of it
    Instant sent{};
    Instant send_ended{};
    Instant first_byte{};
    Instant ended{};
  };

  // Told once per exchange. May send again from within on_answered; must not from within on_failed,
  // which can come out of send() itself. May destroy the client only from outside both.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_answered(ExchangeClient& client, const Answer& answer) = 0;
    virtual void on_failed(ExchangeClient& client, FailureKind kind, const std::string& reason) = 0;
  };

  enum class BodyUse { kDiscard, kKeep };

  virtual ~ExchangeClient() = default;

  virtual bool busy() const = 0;
  virtual const os::Endpoint& endpoint() const = 0;
  // When the exchange in hand began.
  virtual Instant sent() const = 0;
  // Begins an exchange; none is in hand.
  virtual void send(const Pieces& pieces) = 0;
  // Ends the exchange in hand as failed.
  virtual void fail(FailureKind kind, const std::string& reason) = 0;
  // Closes the connection and forgets the exchange; the listener is not told.
  virtual void close() = 0;
};

// Makes the clients of a load: the protocol is decided once.
using ClientFactory = std::function<std::unique_ptr<ExchangeClient>(
    os::EventLoop& loop, const os::Endpoint& endpoint, ExchangeClient::Listener& listener,
    ExchangeClient::BodyUse body_use)>;

}  // namespace septet::measure
