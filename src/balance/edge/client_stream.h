// ClientStream: one request of a client on an HTTP/2 stream of its own, a gRPC call or an ordinary
// one.
//
// Owned by its Http2Connection, which makes it when the request's head is whole.
#pragma once

#include "balance/edge/http2_codec.h"
#include "base/time.h"

namespace septet::balance {

class ClientStream : public Http2Stream {
 public:
  // Of one that is not good, fields are missing.
  struct Head {
    FieldList fields;
    enum class State { kGood, kTooLarge, kMalformed } state = State::kGood;
  };

  // Looks at the head that it was made with; once.
  virtual void begin() = 0;
  virtual void check_time(Instant now) = 0;
  virtual void memory_freed() = 0;
  // Which replicas may take it has changed.
  virtual void requeue() {}
  // There is room for more of its reply, as it asked for.
  virtual void go_on() {}

  // Trailers of a request mean nothing to us.
  bool on_field(std::string_view /*name*/, std::string_view /*value*/) override { return true; }
  void on_fields_end() override {}

 protected:
  // What a client may send before memory for its body was found: a stream's first window.
  static constexpr std::size_t kFirstWindow = 65535;
  // Long bodies are received through a window of this size at most.
  static constexpr std::size_t kMaxWindow = 4 << 20;
};

}  // namespace septet::balance
