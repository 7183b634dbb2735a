// take_field: protobuf's wire format, field by field, where a message is looked at without being
// copied (protobuf.dev, Encoding).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace septet::balance {

struct ProtobufField {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // of a varint
  std::string_view bytes;   // of a string or a message
};

// Takes the first field off; nothing at the end, or when what is left is cut or malformed.
std::optional<ProtobufField> take_field(std::string_view& message);

}  // namespace septet::balance
