// HttpConnection: one client's connection; private to the HTTP server.
//
//            first byte          complete           dispatched          respond
//   kIdle ------------> kHead ------------> kBody ------------> kBusy ---------> kWriting
//     ^                                                                              |
//     +----------------------------- keep-alive -------------------------------------+
//                                                        close --> kLingering --> gone
#pragma once

#include <sys/uio.h>

#include <optional>

#include "serve/edge/http_server.h"
#include "serve/edge/http_transport.h"

namespace septet::serve {

class HttpConnection : private os::EventLoop::Watcher {
 public:
  // identity: null for a plain connection.
  HttpConnection(HttpServer& server, std::uint64_t id, os::UniqueFd fd,
                 const std::shared_ptr<const TlsIdentity>& identity);
  ~HttpConnection() override;

  [[nodiscard]] Result<Ok> start();
  std::uint64_t id() const { return id_; }
  // The response to the request in hand.
  void respond(HttpResponse response);
  // Ends the connection if its deadline has passed.
  void check_deadline(Instant now);
  // Ends it now if it is idle, else with its present response.
  void end_when_idle();

 private:
  // The end of the client's side shows behind a pipelined request too.
  static constexpr std::uint32_t kReading = EPOLLIN | EPOLLRDHUP;

  enum class State { kIdle, kHead, kBody, kBusy, kWriting, kLingering, kGone };

  void on_ready(std::uint32_t events) override;
  void read_input();
  bool read_once();
  void process(std::string_view input);
  std::size_t take_head(std::string_view input);
  bool take_slot(std::string_view value, const os::UniqueFd& descriptor);
  std::size_t take_body(std::string_view input);
  std::size_t take_chunks(std::string_view input);
  bool read_body_directly();
  bool grow_body(std::size_t bytes);
  void dispatch();
  void refuse(unsigned status, const std::string& reason);
  void flush();
  void finish_response();
  void set_events(std::uint32_t events);
  void linger();
  void close();
  void lose_client();

  HttpServer& server_;
  std::uint64_t id_;
  os::UniqueFd fd_;
  HttpTransport transport_;
  State state_ = State::kIdle;
  Instant deadline_;
  Instant head_began_{};
  std::uint32_t events_ = 0;
  bool keep_alive_ = true;
  bool processing_ = false;  // process() is on the stack: it goes on with what is left
  bool ending_ = false;

  std::string input_;  // received, not yet taken
  inference::HttpHeadParser parser_;
  std::shared_ptr<HttpExchange> exchange_;
  BufferPool::Buffer buffer_;
  std::size_t body_received_ = 0;
  std::optional<inference::ChunkedDecoder> chunks_;
  std::shared_ptr<const os::SealedMemory> region_;  // of a proxy that puts bodies into slots

  std::string output_head_;
  HttpResponse output_;
  std::vector<iovec> output_parts_;
  std::size_t next_part_ = 0;
};

}  // namespace septet::serve
