// The v2 protocol's infer bodies: JSON, followed by the binary tensors that it announces.
//
//   { JSON, N bytes } [ tensor ] [ tensor ] ...       N is Inference-Header-Content-Length
//
// Tensors are read in place: a binary input is a view into the body. Tensors given as JSON numbers
// are converted once into memory that the request owns. Written bodies are a JSON text and the
// views to send behind it. The rules are those of the inference protocol, tables 1.1 to 1.4.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inference/tensor.h"

namespace septet::inference {

inline constexpr std::string_view kJsonLengthHeader = "Inference-Header-Content-Length";

// Bytes behind the end of a body that may be read, though not relied upon: the JSON parser looks at
// whole vectors. A body buffer allocates this much more than its body.
inline constexpr std::size_t kBodyPadding = 64;

// A body as received.
struct V2Body {
  std::span<const std::byte> bytes;   // JSON and binary; kBodyPadding readable bytes follow
  std::size_t json_bytes = 0;         // the JSON's part of them
  std::shared_ptr<const void> owner;  // keeps the bytes; shared by every tensor read in place
  // kShared: another process may change the bytes, and none follow them. The JSON and tensors of
  // BYTES, whose lengths are relied upon once checked, are copied before anything is read.
  enum class Kind { kOwn, kShared } kind = Kind::kOwn;
};

// A body to send: the JSON, then the pieces back to back.
struct V2Message {
  std::string json;
  std::vector<Blob> binary;

  bool has_binary() const { return !binary.empty(); }
  std::uint64_t binary_bytes() const;
};

// Reads bodies. Owned by one thread: it keeps the JSON parser's memory between calls.
class V2Reader {
 public:
  V2Reader();
  ~V2Reader();
  V2Reader(const V2Reader&) = delete;
  V2Reader& operator=(const V2Reader&) = delete;

  // The request of an infer call; model name and version are the caller's to fill in.
  Outcome<InferRequest> read_request(const V2Body& body);
  // The response to an infer call.
  Outcome<InferResponse> read_response(const V2Body& body);
  // The text of an error body; the whole body when it is not {"error":"text"}.
  std::string read_error(std::string_view body);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

// The body of an infer call: inputs with data as binary tensors, inputs in shared memory by range.
V2Message write_request(const InferRequest& request);
// The same with every input's data as JSON. kInvalidArgument for FP16 and BF16, and for BYTES that
// are not UTF-8.
Outcome<V2Message> write_request_as_json(const InferRequest& request);
// The body of the answer; each output in its own form. kInvalidArgument for FP16 and BF16 as JSON.
Outcome<V2Message> write_response(const InferResponse& response);

}  // namespace septet::inference
