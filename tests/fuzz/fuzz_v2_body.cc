// v2 infer bodies: the first two bytes say how many bytes are JSON, the rest is the body.
//
// What is read as a request and written again must read the same; views stay inside the body.
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "inference/v2_codec.h"

namespace {

using septet::inference::kBodyPadding;
using septet::inference::V2Body;
using septet::inference::V2Message;
using septet::inference::V2Reader;

// A body followed by the padding that the reader may look at.
class PaddedBody {
 public:
  PaddedBody(const void* data, std::size_t size) : bytes_(size + kBodyPadding), size_(size) {
    if (size > 0) {
      std::memcpy(bytes_.data(), data, size);
    }
  }
  V2Body view(std::size_t json_bytes) const {
    return {std::span(bytes_).first(size_), json_bytes, nullptr};
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t size_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const std::size_t length = size - 2;
  const std::size_t json_bytes = std::min<std::size_t>(data[0] * 256U + data[1], length);
  V2Reader reader;
  const PaddedBody body(data + 2, length);
  const auto request = reader.read_request(body.view(json_bytes));
  if (request.ok()) {
    const V2Message message = write_request(*request);
    std::string text = message.json;
    for (const auto& piece : message.binary) {
      text += piece.text();
    }
    const PaddedBody again(text.data(), text.size());
    const auto reread = reader.read_request(again.view(message.json.size()));
    CHECK(reread.ok());
    CHECK(reread->inputs.size() == request->inputs.size());
    for (std::size_t i = 0; i < request->inputs.size(); ++i) {
      CHECK(reread->inputs[i].data.text() == request->inputs[i].data.text());
      CHECK(reread->inputs[i].shape == request->inputs[i].shape);
    }
  }
  const auto response = reader.read_response(body.view(json_bytes));
  if (response.ok()) {
    static_cast<void>(write_response(*response));
  }
  return 0;
}
