#include "inference/slot_call.h"

#include <cstdint>

namespace septet::inference {

namespace {

constexpr std::size_t kPrefixBytes = 5;
constexpr std::uint64_t kRawInputContents = 7U << 3U | 2U;  // field 7, with a length
constexpr unsigned kVarintBytes = 10;

// Takes protobuf's words off the front of bytes that may change: each is read once.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t at() const { return at_; }
  bool at_end() const { return at_ == bytes_.size(); }
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < kVarintBytes && !at_end(); ++i) {
      const std::uint8_t byte = next();
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << (7 * i);
      if ((byte & 0x80U) == 0) {
        return value;
      }
    }
    return std::nullopt;
  }
  bool skip(std::uint64_t count) {
    if (count > bytes_.size() - at_) {
      return false;
    }
    at_ += count;
    return true;
  }
  // The value of a field whose tag was taken; false when it is cut or of no known kind.
  bool skip_value(std::uint64_t tag) {
    switch (tag & 7U) {
      case 0:
        return varint().has_value();
      case 1:
        return skip(8);
      case 2: {
        const std::optional<std::uint64_t> length = varint();
        return length && skip(*length);
      }
      case 5:
        return skip(4);
      default:
        return false;
    }
  }
  std::uint8_t next() {
    const volatile std::byte* const byte = &bytes_[at_++];
    return static_cast<std::uint8_t>(*byte);
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

bool has_prefix(Fields& fields, std::size_t size) {
  if (size < kPrefixBytes || fields.next() != 0) {
    return false;
  }
  std::uint64_t length = 0;
  for (std::size_t i = 1; i < kPrefixBytes; ++i) {
    length = length << 8U | fields.next();
  }
  return length == size - kPrefixBytes;
}

}  // namespace

std::optional<SplitMessage> split_infer_message(std::span<const std::byte> framed) {
  Fields fields(framed);
  if (!has_prefix(fields, framed.size())) {
    return std::nullopt;
  }
  SplitMessage split;
  while (!fields.at_end()) {
    const std::size_t begin = fields.at();
    const std::optional<std::uint64_t> tag = fields.varint();
    if (!tag) {
      return std::nullopt;
    }
    if (*tag == kRawInputContents) {
      const std::optional<std::uint64_t> length = fields.varint();
      const std::size_t at = fields.at();
      if (!length || !fields.skip(*length)) {
        return std::nullopt;
      }
      split.tensors.push_back(framed.subspan(at, *length));
      continue;
    }
    if (!fields.skip_value(*tag)) {
      return std::nullopt;
    }
    const std::span<const std::byte> field = framed.subspan(begin, fields.at() - begin);
    split.rest.append(reinterpret_cast<const char*>(field.data()), field.size());
  }
  return split;
}

std::optional<std::size_t> first_tensor_at(std::string_view framed_beginning) {
  Fields fields(std::as_bytes(std::span(framed_beginning)));
  if (!fields.skip(kPrefixBytes)) {
    return std::nullopt;
  }
  while (const std::optional<std::uint64_t> tag = fields.varint()) {
    if (*tag == kRawInputContents) {
      return fields.varint() ? std::optional(fields.at()) : std::nullopt;
    }
    if (!fields.skip_value(*tag)) {
      break;
    }
  }
  return std::nullopt;
}

}  // namespace septet::inference
