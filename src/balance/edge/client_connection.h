// ClientConnection: one HTTP/1.1 client; takes requests apart, frames their replies. A client whose
// first bytes are HTTP/2's preface becomes an Http2Connection.
//
//   head -> body (in the buffer | in a Body | chunked) -> waiting -> reply -> head | closed
//
// Owned by the Reactor, used by its thread. One request at a time: what a client sends meanwhile
// stays in the socket. A client that closes its side while it waits is taken to be gone.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "balance/edge/client.h"
#include "balance/edge/http_request.h"
#include "balance/known_head.h"
#include "inference/edge/tls_stream.h"
#include "os/event_loop.h"
#include "os/unique_fd.h"

namespace septet::balance {

class Reactor;

class ClientConnection final : public Client,
                               public os::EventLoop::Watcher,
                               public HttpRequest::Framing {
 public:
  // tls: null for a connection that is not encrypted.
  ClientConnection(Reactor& reactor, os::UniqueFd fd, const inference::TlsIdentity* tls);
  ~ClientConnection() override;
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  Result<Ok> begin();
  void check_time(Instant now) override;
  void memory_freed() override;
  void on_ready(std::uint32_t events) override;

  void write_own(const OwnReply& reply) override;
  void write_whole(const WholeReply& reply) override;
  void write_head(const inference::HttpHead& head) override;
  ReplySink::Flow write_data(std::string_view data, std::string_view wire) override;
  void write_end() override;
  void write_cut() override { close(); }

 private:
  enum class State { kHead, kBody, kChunked, kMemory, kWaiting, kReply, kClosing, kClosed };

  void drive();
  std::size_t receive(char* to, std::size_t room);
  bool read_head();
  bool speaks_http2();
  bool parse_head();
  inference::HeadResult take_head();
  void begin_body();
  void place_body();
  bool take_body();
  bool take_chunks();
  void wait_for_reply();
  void refuse(unsigned status, std::string_view message);
  ClientConnectionEnds ends() const;
  void write_all(std::string_view head, std::string_view body);
  void write(std::string_view head, std::string_view body);
  ssize_t send_from(std::size_t begin, std::string_view head, std::string_view body);
  bool flush();
  void request_done();
  void close();
  void let_go();
  void linger();
  void want_writable(bool wanted);
  std::string_view buffered() const { return {buffer_.get() + begin_, end_ - begin_}; }

  Reactor& reactor_;
  os::UniqueFd fd_;
  std::unique_ptr<inference::TlsStream> tls_;
  State state_ = State::kHead;
  bool readable_ = false;
  bool peer_closed_ = false;
  bool wants_writable_ = false;
  bool keep_alive_ = true;
  bool driving_ = false;
  bool is_new_ = true;        // nothing was parsed yet
  bool reply_ended_ = false;  // all of it is written or in out_
  Instant since_{};           // of the phase that check_time() judges
  BufferPool::Buffer buffer_;
  std::size_t begin_ = 0;  // of what has not been parsed
  std::size_t end_ = 0;
  inference::HttpHeadParser parser_;
  KnownHead known_;
  bool in_head_ = false;  // the parser has seen part of a head
  HttpRequest request_;
  std::optional<inference::ChunkedDecoder> chunks_;
  std::uint64_t body_left_ = 0;
  std::size_t chunks_at_ = 0;  // where chunks are read to, behind the head
  bool streamed_chunked_ = false;
  std::string reply_head_;  // memory kept
  std::string out_;         // what the socket did not take
  std::size_t out_sent_ = 0;
};

}  // namespace septet::balance
