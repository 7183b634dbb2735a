#include "inference/slot_message.h"

#include "base/check.h"
#include "base/text.h"
#include "inference/slot_call.h"

namespace septet::inference {

namespace {

// Up to the next blank, which is taken too; a number has one way to be written only.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  const std::size_t blank = text.find(' ');
  const std::string_view digits = text.substr(0, blank);
  text = blank == std::string_view::npos ? std::string_view{} : text.substr(blank + 1);
  if (digits.size() > 1 && digits.front() == '0') {
    return std::nullopt;
  }
  return parse_uint(digits);
}

bool is_within(const SlotMessage& message) {
  return message.region_bytes <= SlotMessage::kMostRegionBytes && message.length > 0 &&
         message.offset <= message.region_bytes &&
         message.length <= message.region_bytes - message.offset;
}

}  // namespace

bool is_slot_field(std::string_view name) {
  switch (name.size()) {
    case kSlotField.size():
      return equal_ignoring_case(name, kSlotField);
    case kSlotsField.size():
      return equal_ignoring_case(name, kSlotsField);
    case kSlotCallsField.size():
      return equal_ignoring_case(name, kSlotCallsField);
    default:
      return false;
  }
}

void append_slot_message(std::string& out, const SlotMessage& message) {
  CHECK(is_within(message));
  out += kSlotsVersion;
  for (const std::uint64_t number : {message.region_bytes, message.offset, message.length}) {
    out += ' ';
    out += std::to_string(number);
  }
}

std::optional<SlotMessage> parse_slot_message(std::string_view value) {
  if (!value.starts_with(kSlotsVersion) || value.ends_with(' ')) {
    return std::nullopt;
  }
  value.remove_prefix(kSlotsVersion.size());
  if (!value.starts_with(' ')) {
    return std::nullopt;
  }
  value.remove_prefix(1);
  const std::optional<std::uint64_t> region_bytes = take_number(value);
  const std::optional<std::uint64_t> offset = take_number(value);
  const std::optional<std::uint64_t> length = take_number(value);
  if (!region_bytes || !offset || !length || !value.empty()) {
    return std::nullopt;
  }
  const SlotMessage message{*region_bytes, *offset, *length};
  return is_within(message) ? std::optional(message) : std::nullopt;
}

}  // namespace septet::inference
