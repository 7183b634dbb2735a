// HttpStream: an ordinary request on an HTTP/2 stream: takes its body, frames its reply.
//
//   body -> (memory) -> waiting -> replying -> done
//
// What the request means and who answers it is HttpRequest's, as for HTTP/1.1. Owned by its
// Http2Connection.
#pragma once

#include <string>

#include "balance/edge/byte_queue.h"
#include "balance/edge/client_stream.h"
#include "balance/edge/http_request.h"

namespace septet::balance {

class Http2Connection;
class Reactor;

class HttpStream final : public ClientStream, public HttpRequest::Framing {
 public:
  HttpStream(Reactor& reactor, Http2Connection& connection, StreamId id, Head head);

  void begin() override;
  void check_time(Instant now) override;
  void memory_freed() override;
  void go_on() override { request_.resume(); }

  void on_data(std::string_view bytes) override;
  void on_end() override;
  void on_closed(Http2Error error) override;
  Supply supply(char* to, std::size_t room) override;

  void write_own(const OwnReply& reply) override;
  void write_whole(const WholeReply& reply) override;
  void write_head(const inference::HttpHead& head) override;
  ReplySink::Flow write_data(std::string_view data, std::string_view wire) override;
  void write_end() override;
  void write_cut() override;

 private:
  enum class State { kBody, kMemory, kWaiting, kReplying, kDone };

  bool has_length() const;
  void refuse(unsigned status, std::string_view message);
  void place_body();
  void take_body(std::string_view bytes);
  void submit();
  void write_all(const FieldList& fields, std::string_view body);

  Reactor& reactor_;
  Http2Connection& connection_;
  StreamId id_;
  State state_ = State::kBody;
  bool client_ended_ = false;  // it sends nothing more
  Instant since_;              // of the last progress
  Head fields_;
  std::string cookies_;  // of the request's head
  HttpRequest request_;
  ByteQueue early_;  // of the body, while there is no memory for all of it
  ByteQueue reply_;
  bool reply_ended_ = false;
  bool paused_ = false;  // the replica waits for the client
};

}  // namespace septet::balance
