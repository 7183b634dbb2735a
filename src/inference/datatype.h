// Datatype: the element types of the v2 protocol, and what a shape counts.
//
// Values only. The numbers are those of config.pbtxt's DataType (inference protocol, table 1.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace septet::inference {

enum class Datatype {
  kInvalid = 0,
  kBool = 1,
  kUint8 = 2,
  kUint16 = 3,
  kUint32 = 4,
  kUint64 = 5,
  kInt8 = 6,
  kInt16 = 7,
  kInt32 = 8,
  kInt64 = 9,
  kFp16 = 10,
  kFp32 = 11,
  kFp64 = 12,
  kBytes = 13,
  kBf16 = 14,
};

// "FP32"; the name on the wire. "INVALID" for kInvalid.
std::string_view wire_name(Datatype datatype);
// "TYPE_FP32"; the name in config.pbtxt. BYTES is TYPE_STRING there.
std::string config_name(Datatype datatype);
// kInvalid when the name is none of the protocol's.
Datatype datatype_from_wire(std::string_view name);
// Bytes of one element; 0 for BYTES (each element has its own length) and kInvalid.
std::size_t element_size(Datatype datatype);

using Shape = std::vector<std::int64_t>;

// Product of the dimensions; nothing when one is negative or the product does not fit 63 bits.
// The empty shape counts one element.
std::optional<std::uint64_t> element_count(std::span<const std::int64_t> shape);
// element_count times element_size; nothing as above, or for BYTES.
std::optional<std::uint64_t> byte_size(Datatype datatype, std::span<const std::int64_t> shape);
// "[1,16]"; without blanks, as the protocol's messages show shapes.
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace septet::inference
