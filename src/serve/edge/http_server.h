// HttpServer: HTTP/1.1 over TCP and Unix sockets on an event loop.
//
//   listener --> connection: head -> body -> handler ...respond... -> write -> next head
//
// One thread runs the loop and everything here, except HttpExchange::respond, which any thread may
// call once. Bodies are received straight into a pooled buffer, in which the byte behind the JSON
// is aligned; our own proxy's lie in its shared memory (inference/slot_message.h) and are read
// there. Responses are written from where their pieces lie. Every wait has a deadline, every
// size a limit. A refused message closes its own connection and disturbs no other.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "inference/edge/tls_stream.h"
#include "inference/http1.h"
#include "inference/tensor.h"
#include "os/endpoint.h"
#include "os/event_loop.h"
#include "serve/edge/buffer_pool.h"
#include "serve/edge/slot_regions.h"

namespace septet::serve {

using inference::TlsIdentity;

struct HttpServerOptions {
  inference::HttpLimits head_limits{};
  std::uint64_t max_body_bytes = std::uint64_t{64} << 20;
  std::size_t max_connections = 16384;
  Duration head_timeout = seconds(15);   // from a head's first byte to its last
  Duration idle_timeout = seconds(600);  // between requests
  Duration write_timeout = seconds(30);  // without progress
  // A body must arrive within body_grace plus its size at this rate.
  Duration body_grace = seconds(30);
  std::uint64_t body_bytes_per_second = 64 * 1024;
  // A client that ends its side of a TCP connection may have gone or may still read. Its request is
  // answered for so long; then it counts as gone.
  Duration half_closed_grace = seconds(1);
  std::shared_ptr<const TlsIdentity> tls{};  // for TCP; null = none. Unix sockets stay plain
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> fields{};
  std::string body{};
  std::vector<inference::Blob> pieces{};     // sent behind body
  bool close = false;                        // end the connection afterwards
  std::shared_ptr<const void> until_sent{};  // kept until the last byte has been handed over
};

class HttpServer;

// The way back to a server that may be gone when an answer comes. The loop outlives every answer.
struct HttpServerLink {
  os::EventLoop* loop = nullptr;
  HttpServer* server = nullptr;  // null once it is gone; read and written in the loop's thread
  std::thread::id thread{};      // the loop's
};

// One request, from its complete body to its response.
class HttpExchange {
 public:
  HttpExchange(HttpServer& server, std::uint64_t connection, std::string head_text,
               const inference::HttpHead& head, const char* head_origin);
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  const inference::HttpHead& head() const { return head_; }
  // kBodyPadding readable bytes follow.
  std::span<const std::byte> body() const { return body_.bytes; }
  const std::shared_ptr<const void>& body_owner() const { return body_.owner; }
  // Whether the body lies in shared memory: it may change while it is read, no padding follows, and
  // what has to stay as it was when it was checked has to be copied first.
  bool body_in_slot() const { return body_in_slot_; }

  // When the first byte of the head came, and when the last of the body was there.
  Instant received_from() const { return received_from_; }
  Instant received_until() const { return received_until_; }

  // Puts the decompressed body in the place of the received one.
  void replace_body(inference::Blob body) { body_ = std::move(body); }
  // Puts a copy in the place of a body in shared memory.
  void own_body();
  std::uint64_t max_body_bytes() const;

  // Of the server; the loop's thread only.
  std::size_t connection_count() const;

  // Called once if the client goes away before the response; the loop's thread only.
  void on_client_gone(std::function<void()> callback) { client_gone_ = std::move(callback); }

  // Once, from any thread. Harmless when the client has gone.
  void respond(HttpResponse response);

 private:
  friend class HttpConnection;

  std::shared_ptr<const HttpServerLink> link_;
  std::uint64_t connection_;
  std::string head_text_;
  inference::HttpHead head_;  // views into head_text_
  inference::Blob body_;
  bool body_in_slot_ = false;
  std::function<void()> client_gone_;
  Instant received_from_{};
  Instant received_until_{};
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Must not block. Whoever keeps the exchange responds.
  virtual void handle(std::shared_ptr<HttpExchange> exchange) = 0;
  // How many bytes of the body come before what should be aligned.
  virtual std::size_t body_lead(const inference::HttpHead& /*head*/) { return 0; }
};

class HttpConnection;

class HttpServer {
 public:
  // Loop and handler outlive the server and every exchange; constructed in the loop's thread or
  // before it runs.
  HttpServer(os::EventLoop& loop, HttpHandler& handler, HttpServerOptions options = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Serves what connects there too; answers the endpoint it really has. kPrecondition when it is
  // in use.
  Result<os::Endpoint> listen(const os::Endpoint& endpoint);
  // Accepts no more; connections end with their present response.
  void stop_listening();

  std::size_t connection_count() const { return connections_.size(); }
  const HttpServerOptions& options() const { return options_; }

 private:
  friend class HttpConnection;
  friend class HttpExchange;

  class Listener;

  void accept_all(Listener& listener);
  void pause_accepting();
  void forget(HttpConnection& connection);
  void deliver(std::uint64_t connection, HttpResponse response);
  void sweep();

  os::EventLoop& loop_;
  HttpHandler& handler_;
  HttpServerOptions options_;
  BufferPool pool_;
  SlotRegions regions_;
  std::string scratch_;  // what a connection receives before it needs memory of its own
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::uint64_t last_connection_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<HttpConnection>> connections_;
  std::vector<std::unique_ptr<HttpConnection>> dead_;  // may still be on the call stack
  os::EventLoop::Timer sweep_timer_;
  os::EventLoop::Timer accept_timer_;
  bool listening_ = true;
  std::shared_ptr<HttpServerLink> link_;
};

}  // namespace septet::serve
