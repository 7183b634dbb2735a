// HttpClient: one keep-alive HTTP/1.1 connection that carries one exchange at a time.
//
// Owned by whoever drives it; used by the loop's thread. It connects when something is to be sent
// and is not connected. The time stamps are what the load generator measures by: the end of an
// answer is the instant at which the loop saw its last bytes ready, so that the handling of other
// connections in the same round is not charged to the server.
//
//   kIdle -> kConnecting -> kSending -> kReceiving -> kIdle
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "inference/http1.h"
#include "measure/level_result.h"
#include "os/endpoint.h"
#include "os/event_loop.h"

namespace septet::measure {

class HttpClient final : public os::EventLoop::Watcher {
 public:
  // Head and body in pieces, sent back to back. The bytes stay the caller's and must live until the
  // exchange has ended.
  using Pieces = std::array<std::string_view, 3>;

  struct Answer {
    unsigned status = 0;
    std::string_view body;  // with BodyUse::kKeep, and the first bytes of an error's
    std::optional<std::uint64_t> json_bytes;  // with BodyUse::kKeep: the JSON's part of the body
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
    virtual void on_answered(HttpClient& client, const Answer& answer) = 0;
    virtual void on_failed(HttpClient& client, FailureKind kind, const std::string& reason) = 0;
  };

  enum class BodyUse { kDiscard, kKeep };

  HttpClient(os::EventLoop& loop, os::Endpoint endpoint, Listener& listener, BodyUse body_use);
  ~HttpClient() override;
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool busy() const { return state_ != State::kIdle; }
  bool connected() const { return fd_.valid(); }
  const os::Endpoint& endpoint() const { return endpoint_; }
  // When the exchange in hand began.
  Instant sent() const { return answer_.sent; }

  // Begins an exchange; none is in hand.
  void send(const Pieces& pieces);
  // Ends the exchange in hand as failed.
  void fail(FailureKind kind, const std::string& reason);
  // Closes the connection and forgets the exchange; the listener is not told.
  void close();

  void on_ready(std::uint32_t events) override;

 private:
  enum class State { kIdle, kConnecting, kSending, kReceiving };

  void connect();
  void write_pieces();
  void read_bytes();
  void take_bytes(std::string_view bytes);
  void take_head();
  // Body bytes behind the head; returns how many belong to the answer.
  std::size_t take_body(std::string_view bytes);
  std::size_t take_chunks(std::string_view bytes);
  void keep_body(std::string_view bytes);
  void body_ended_by_close();
  void finish();
  void broken(const std::string& what);

  os::EventLoop& loop_;
  os::Endpoint endpoint_;
  Listener& listener_;
  BodyUse body_use_;
  os::UniqueFd fd_;
  State state_ = State::kIdle;
  bool waits_for_room_ = false;  // EPOLLOUT is watched

  Pieces pieces_;
  std::vector<char> buffer_;
  std::string head_bytes_;  // of a head that came in parts
  inference::HttpHeadParser parser_;
  inference::HttpHead head_;
  inference::ChunkedDecoder chunks_;
  bool head_done_ = false;
  bool body_done_ = false;
  bool keep_alive_ = true;
  std::uint64_t body_left_ = 0;
  std::string body_;
  Answer answer_;
};

}  // namespace septet::measure
