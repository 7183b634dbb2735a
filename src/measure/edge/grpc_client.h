// GrpcClient: one HTTP/2 connection that carries one gRPC call at a time.
//
// Frames by libnghttp2, on the event loop, without threads of its own. A unary call is a stream;
// with CallStyle::kStream one bidirectional stream stays open and every exchange is one message
// each way.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "measure/edge/client_transport.h"
#include "measure/edge/exchange_client.h"
#include "measure/edge/grpc_message.h"

namespace septet::measure {

class GrpcClient final : public ExchangeClient, public os::EventLoop::Watcher {
 public:
  enum class CallStyle { kUnary, kStream };
  struct Settings {
    CallStyle style = CallStyle::kUnary;
    std::vector<std::pair<std::string, std::string>> metadata{};
    TlsPeer tls{};
  };

  GrpcClient(os::EventLoop& loop, os::Endpoint endpoint, Listener& listener, BodyUse body_use,
             Settings settings);
  ~GrpcClient() override;
  GrpcClient(const GrpcClient&) = delete;
  GrpcClient& operator=(const GrpcClient&) = delete;

  bool busy() const override;
  const os::Endpoint& endpoint() const override { return endpoint_; }
  Instant sent() const override { return answer_.sent; }
  void send(const Pieces& pieces) override;
  void fail(FailureKind kind, const std::string& reason) override;
  void close() override;

  void on_ready(std::uint32_t events) override;

 private:
  struct Http2;  // the nghttp2 session and its callbacks
  friend struct Http2;
  enum class State { kIdle, kConnecting, kOpening, kOpen };

  void connect();
  void open_transport();
  void submit();
  // Writes what the session has to say; false when the connection failed in it.
  bool flush();
  void read_bytes();
  void stream_ended(std::uint32_t error_code);
  void finish();
  std::size_t kept_bytes() const;

  os::EventLoop& loop_;
  os::Endpoint endpoint_;
  Listener& listener_;
  BodyUse body_use_;
  CallStyle style_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  TlsPeer tls_;
  os::UniqueFd fd_;
  std::optional<ClientTransport> transport_;  // once connected
  State state_ = State::kIdle;
  bool in_exchange_ = false;
  std::unique_ptr<Http2> http2_;

  Pieces pieces_;
  std::string unsent_;  // frames that the socket had no room for
  Answer answer_;
  std::string grpc_status_;
  std::string grpc_message_;
  std::string http_status_;
  bool stream_done_ = false;
  GrpcMessageReader message_;
};

}  // namespace septet::measure
