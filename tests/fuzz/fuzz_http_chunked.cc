// Chunked bodies: taken whole, and byte by byte, must give the same.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "inference/http1.h"

namespace {

using septet::inference::ChunkedDecoder;

struct Decoded {
  std::string body;
  bool done = false;
  bool bad = false;
  std::size_t consumed = 0;
};

Decoded decode(std::string_view input, std::size_t step_bytes) {
  ChunkedDecoder decoder;
  Decoded result;
  while (!result.done && !result.bad && result.consumed < input.size()) {
    std::string_view piece = input.substr(result.consumed, step_bytes);
    while (!piece.empty() && !result.done && !result.bad) {
      const ChunkedDecoder::Step step = decoder.feed(piece);
      CHECK(step.consumed <= piece.size());
      result.body += step.data;
      result.done = step.done;
      result.bad = step.bad;
      result.consumed += step.consumed;
      if (step.consumed == 0) {
        CHECK(step.done || step.bad);
        break;
      }
      piece.remove_prefix(step.consumed);
    }
  }
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const Decoded whole = decode(input, size == 0 ? 1 : size);
  const Decoded pieces = decode(input, 1);
  CHECK(whole.bad == pieces.bad);
  CHECK(whole.done == pieces.done);
  if (!whole.bad) {
    CHECK(whole.body == pieces.body);
  }
  CHECK(whole.body.size() <= size);
  return 0;
}
