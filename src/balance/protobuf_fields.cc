#include "balance/protobuf_fields.h"

namespace septet::balance {

namespace {

// The varint at the front, taken off; nothing when it is cut or too long.
std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < 10 && i < bytes.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(bytes[i]);
    value |= static_cast<std::uint64_t>(byte & 0x7FU) << (7 * i);
    if ((byte & 0x80U) == 0) {
      bytes.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

std::optional<std::string_view> take(std::string_view& bytes, std::uint64_t count) {
  if (count > bytes.size()) {
    return std::nullopt;
  }
  const std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

}  // namespace

std::optional<ProtobufField> take_field(std::string_view& message) {
  const std::optional<std::uint64_t> tag = take_varint(message);
  if (!tag) {
    return std::nullopt;
  }
  ProtobufField field{*tag >> 3U, 0, {}};
  std::optional<std::string_view> bytes;
  switch (*tag & 7U) {
    case 0: {
      const std::optional<std::uint64_t> value = take_varint(message);
      field.value = value.value_or(0);
      return value ? std::optional(field) : std::nullopt;
    }
    case 1:
      bytes = take(message, 8);
      break;
    case 2: {
      const std::optional<std::uint64_t> length = take_varint(message);
      bytes = length ? take(message, *length) : std::nullopt;
      field.bytes = bytes.value_or(std::string_view{});
      break;
    }
    case 5:
      bytes = take(message, 4);
      break;
    default:
      break;
  }
  return bytes ? std::optional(field) : std::nullopt;
}

}  // namespace septet::balance
