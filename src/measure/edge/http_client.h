// HttpClient: an ExchangeClient over one keep-alive HTTP/1.1 connection.
//
//   kIdle -> kConnecting -> kOpening (TLS) -> kSending -> kReceiving -> kIdle
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inference/http1.h"
#include "measure/edge/client_transport.h"
#include "measure/edge/exchange_client.h"

namespace septet::measure {

class HttpClient final : public ExchangeClient, public os::EventLoop::Watcher {
 public:
  HttpClient(os::EventLoop& loop, os::Endpoint endpoint, Listener& listener, BodyUse body_use,
             TlsPeer tls = {});
  ~HttpClient() override;
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool busy() const override { return state_ != State::kIdle; }
  const os::Endpoint& endpoint() const override { return endpoint_; }
  Instant sent() const override { return answer_.sent; }
  void send(const Pieces& pieces) override;
  void fail(FailureKind kind, const std::string& reason) override;
  void close() override;

  void on_ready(std::uint32_t events) override;

 private:
  enum class State { kIdle, kConnecting, kOpening, kSending, kReceiving };

  void connect();
  void open_transport();
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
  TlsPeer tls_;
  os::UniqueFd fd_;
  std::optional<ClientTransport> transport_;  // once connected
  State state_ = State::kIdle;

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
