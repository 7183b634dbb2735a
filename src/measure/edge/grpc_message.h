// gRPC's messages as bytes, and its status codes.
//
//   1 byte: compressed or not | length, 4 bytes big-endian | protobuf
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "measure/message_compression.h"

namespace septet::measure {

// A protobuf message as it goes over the wire.
std::string framed_message(std::string_view protobuf);

// As gRPC's header grpc-encoding says it: "identity", "gzip", "deflate".
const char* to_string(MessageCompression compression);

// The same, compressed; as it is without compression.
std::string framed_message(std::string_view protobuf, MessageCompression compression);

// The nearest HTTP status of a gRPC status code: 0 -> 200, UNAVAILABLE -> 503, INTERNAL -> 500, ...
unsigned http_status_of_grpc(unsigned code);

// The text of a ModelStreamInferResponse's error_message, field 1, which stands first; nothing when
// the message has none. The text may be cut short.
std::optional<std::string_view> stream_error(std::string_view message);

// Takes one message out of the bytes of a stream, which come in any pieces.
class GrpcMessageReader {
 public:
  // Forgets what came; keeps at most so many bytes of the next message.
  void start(std::size_t kept_bytes);
  // Bytes behind the message's end are ignored.
  void take(std::string_view bytes);
  bool done() const { return done_; }
  // The message's first bytes.
  std::string_view text() const { return text_; }

 private:
  std::size_t kept_bytes_ = 0;
  std::string prefix_;  // until the length is known
  std::uint64_t left_ = 0;
  bool done_ = false;
  std::string text_;
};

}  // namespace septet::measure
