// Http2Client: a blocking HTTP/2 client for tests: requests on streams of one connection, in
// pieces.
//
// It sends what it is told to, also what no honest client would; names come out in lower case.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "balance/edge/http2_codec.h"
#include "os/endpoint.h"

namespace septet::test {

class Http2Client final : public balance::Http2Codec::Owner {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;
  struct Reply {
    std::string status;   // empty: none came
    std::string interim;  // statuses below 200 before it
    std::string fields;   // "name: value\n" of the head, without the status
    std::string body;
    bool complete = false;                                   // the server has ended it
    balance::Http2Error error = balance::Http2Error::kNone;  // with which the stream closed
  };

  // Aborts the test program when it cannot connect.
  explicit Http2Client(const os::Endpoint& endpoint,
                       const balance::Http2Codec::Limits& limits = {.stream_window = 1 << 20});
  ~Http2Client() override;

  // The pseudo-fields of such a request, and more.
  static Fields head(std::string method, std::string path, Fields more = {});

  // Begins a request; what is sent of its body follows with send() and finish().
  balance::StreamId begin(const Fields& fields);
  void send(balance::StreamId id, std::string_view body);
  void finish(balance::StreamId id);
  void reset(balance::StreamId id);
  // Whether replies' data is taken; else the windows fill.
  void take_data(bool wanted);

  // Until so much of the reply's body is there, or the stream or the connection has closed.
  const Reply& wait_for(balance::StreamId id, std::size_t body_bytes);
  // Until the stream or the connection has closed.
  Reply wait(balance::StreamId id);
  Reply ask(const Fields& fields, std::string_view body = {});
  // How much of the body has left here, as far as the server's windows let it.
  std::size_t sent(balance::StreamId id) const;
  bool connected() const { return fd_.valid(); }
  // Sends what may be sent, takes what has come; waits so long for something.
  void turn(int wait_ms);

  balance::Http2Stream* on_stream_opened(balance::StreamId /*id*/) override { return nullptr; }
  bool on_frame(balance::Http2Frame /*frame*/, std::size_t /*bytes*/) override { return true; }

 private:
  class Stream;

  void flush();
  Stream& stream(balance::StreamId id) const;

  os::UniqueFd fd_;
  balance::Http2Codec codec_;
  std::map<balance::StreamId, std::unique_ptr<Stream>> streams_;
  bool takes_data_ = true;
};

}  // namespace septet::test
