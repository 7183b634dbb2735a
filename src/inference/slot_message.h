// SlotMessage: says where in shared memory the body of a request lies, in the place of the body.
//
//   the sender's region: a sealed memory file, whose descriptor is sent along with the first
//   message of every connection
//   +-----------------------------------------------------------+
//   |     slot: [ JSON | tensors ...            ]    |  slot  |  |
//   +-----------------------------------------------------------+
//             ^ offset, `length` bytes
//
// It travels as a field of an HTTP/1.1 head over a Unix socket; the request's own body is empty:
//
//   Septet-Slots: 1                                asks for, and grants, bodies in slots
//   Septet-Slot: 1 REGION_BYTES OFFSET LENGTH      the message, of version 1
//
// Whoever does not know the fields ignores them and grants nothing. Pure text and numbers: no
// number is used before all of them were checked against one another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace septet::inference {

inline constexpr std::string_view kSlotsField = "Septet-Slots";
inline constexpr std::string_view kSlotsVersion = "1";
inline constexpr std::string_view kSlotField = "Septet-Slot";

// Whether the field belongs to one connection between proxy and replica and is passed on by
// neither.
bool is_slot_field(std::string_view name);

struct SlotMessage {
  static constexpr std::uint64_t kMostRegionBytes = std::uint64_t{1} << 40U;

  std::uint64_t region_bytes = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  bool operator==(const SlotMessage&) const = default;
};

// Appends the field's value. The message is one that parse_slot_message() would give (CHECK).
void append_slot_message(std::string& out, const SlotMessage& message);
// The message, when it is of our version, well formed and its bytes lie within the region.
std::optional<SlotMessage> parse_slot_message(std::string_view value);

}  // namespace septet::inference
